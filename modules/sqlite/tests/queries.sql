pragma journal_mode = delete;
create table person(id integer primary key, name text not null unique, born integer check (born > 1800), parent references person(id));
insert into person values (1, 'Ada', 1815, null), (2, 'Byron', 1836, 1), (3, 'Ralph', 1839, 1), (4, 'Anne', 1837, 1), (5, 'Judith', 1873, 4);
insert into person values (6, 'Ada', 1900, null);
insert into person values (6, 'Old', 1700, null);
select name, born, (select count(*) from person c where c.parent = p.id) from person p order by born;
with recursive line(id, name, depth) as (select id, name, 0 from person where parent is null union all
  select p.id, p.name, depth + 1 from person p join line on p.parent = line.id) select depth, group_concat(name, '/') from line group by depth;
select name, rank() over (order by born), lag(name) over (order by born), sum(born) over (order by id rows between 1 preceding and current row) from person;
select json_group_array(json_object('name', name, 'born', born)) from person where born > 1836;
select json_extract('{"a":[1,2,{"b":"deep"}]}', '$.a[2].b'), '{"x":5}' -> 'x';
create table note(id integer primary key, body text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)
  insert into note(body) select printf('note %d about %s %08x', i, case i % 3 when 0 then 'rain' when 1 then 'sun' else 'wind' end, i * 2654435761 % 4294967296) from n;
create index note_body on note(body);
explain query plan select * from note where body like 'note 1%';
select count(*), min(body), max(body) from note where body between 'note 15' and 'note 19';
begin; delete from note where id % 2; select count(*) from note; rollback; select count(*) from note;
savepoint s; update note set body = upper(body) where id < 10; release s;
select body from note where id in (3, 9, 10);
create virtual table words using fts5(body);
insert into words select body from note;
select count(*) from words where words match 'rain OR wind';
select highlight(words, 0, '[', ']') from words where words match 'rain AND about' order by rank limit 2;
create virtual table box using rtree(id, x0, x1, y0, y1);
insert into box select id, id % 50, id % 50 + 1, id / 50, id / 50 + 2 from note;
select count(*) from box where x0 > 10 and x1 < 20 and y0 > 5 and y1 < 30;
create trigger grow after insert on person begin insert into note(body) values ('born: ' || new.name); end;
insert into person values (7, 'Nell', 1990, 5); select body from note order by id desc limit 1;
create view tall as select name, length(name) as n from person; select * from tall where n > 4;
select sin(0.5), pow(2, 0.5), round(2.5), 7 / 2, 7 % 3, 1 << 40, ~1, 0.1 + 0.2, 1e300 * 1e10, 9223372036854775807 + 1;
select date('2026-11-20', '+40 days', 'weekday 1'), strftime('%j %W', '2024-02-29'), julianday('2000-01-01');
select typeof(x'00ff'), quote('it''s'), unicode('ä'), char(8364), instr('haystack', 'st'), substr('abcdef', -3, 2);
select printf('%.15g|%e|%,d|%q|%10.3f', 0.1, 12345.678, 1234567890, 'o''k', 3.14159);
select * from missing;
select 1 from;
.mode box
select * from tall limit 2;
.mode csv
select name, born from person limit 3;
.mode insert person2
select * from person limit 1;
