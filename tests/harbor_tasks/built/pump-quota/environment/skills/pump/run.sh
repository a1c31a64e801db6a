#!/bin/sh
# pump: quota NAME N sets a pump's share of the mains in percent; show prints all.
cd "$(dirname "$0")"
case "$1" in
    quota) python3 -c "
import json, sys
state = json.load(open('state.json'))
state[sys.argv[1]] = int(sys.argv[2])
json.dump(state, open('state.json', 'w'))" "$2" "$3" ;;
    show) cat state.json ;;
    *) sed -n 2p run.sh ;;
esac
