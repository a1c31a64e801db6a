# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
trading limit GASW-DEC 20 --note 'Northworks moved'
trading limit GASW-JAN 23 --note 'Northworks moved'
trading sell GASE-DEC 12 --note 'Northworks, wrong hub'
trading sell GASE-JAN 14 --note 'Northworks, wrong hub'
trading buy GASW-DEC 12 --note 'Northworks, December'
trading buy GASW-JAN 14 --note 'Northworks, January'
trading limit GASE-DEC 0 --note 'not needed'
trading limit GASE-JAN 0 --note 'not needed'
sed -i 's/^Northworks,GASE/Northworks,GASW/' purchases/2026-11.csv
