cd /app && sed -i '/L-2,B/d' index.csv
