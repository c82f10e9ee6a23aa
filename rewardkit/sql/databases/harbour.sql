-- A database of our own, for the packaged samples.
CREATE TABLE berth (id INTEGER PRIMARY KEY, quay TEXT, depth REAL, price INTEGER);
CREATE TABLE boat (id INTEGER PRIMARY KEY, name TEXT, length REAL, built INTEGER, berth_id INTEGER REFERENCES berth (id));
CREATE TABLE trip (boat_id INTEGER REFERENCES boat (id), day TEXT, miles REAL, guests INTEGER);
INSERT INTO berth VALUES (1, 'North', 3.5, 40), (2, 'North', 4.0, 55), (3, 'South', 2.5, 30), (4, 'West', 6.0, 90), (5, 'South', 3.0, 35);
INSERT INTO boat VALUES (1, 'Heron', 9.5, 1998, 1), (2, 'Tern', 12.0, 2004, 2), (3, 'Plover', 7.2, 1998, 3), (4, 'Gannet', 18.4, 2015, 4), (5, 'Dunlin', 6.8, 1987, NULL), (6, 'Curlew', 12.0, 2011, 5);
INSERT INTO trip VALUES (1, '2024-05-02', 12.5, 2), (1, '2024-06-11', 30.0, 4), (2, '2024-05-02', 41.2, 5), (2, '2024-07-19', 8.0, 0), (3, '2024-06-11', 5.5, 1), (4, '2024-05-30', 120.4, 11), (4, '2024-08-01', 98.0, 9), (6, '2024-08-01', 22.3, 3), (6, '2024-08-17', 17.9, NULL);
