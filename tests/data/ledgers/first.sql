BEGIN TRANSACTION;
CREATE TABLE allocations (
    allocation TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    event TEXT NOT NULL,
    seq INTEGER NOT NULL,
    spec TEXT,
    handle TEXT,
    url TEXT,
    explanation TEXT,
    stop TEXT,
    ends_at REAL,
    PRIMARY KEY (allocation, epoch)
) STRICT;
INSERT INTO "allocations" VALUES('serving-native',1,'serving',4,'{"kind":"notebook","owner":"olivia","owner_id":3,"server_name":"","notebook":"3-17","profile":"lab","class_name":"small","runtime":{"name":"jupyter","driver":"native","ref":"jupyter","accelerator":"cpu","requires":[],"catalog_digest":"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd","kind":"notebook","source":"driver_refs","model_formats":[]},"resources":{"cpu_milli":1000,"memory_bytes":1073741824,"disk_bytes":0,"devices":[],"metal":false},"environment":{},"arguments":[],"prepare_seconds":1800.0,"start_seconds":120.0,"stop_seconds":10.0,"limit_seconds":3600.0}','{"data": {"run": "000000000000000000000000", "boot": "b0", "out_of_memory_kills": 2, "environment": "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", "supervisor": [41, 1000], "first": [42, 1001]}, "url": "http://127.0.0.1:5000/user/olivia/"}','http://127.0.0.1:5000/user/olivia/',NULL,NULL,1795000000.5);
INSERT INTO "allocations" VALUES('stopping',2,'stopping',3,'{"kind":"notebook","owner":"olivia","owner_id":3,"server_name":"","notebook":"3-17","profile":"lab","class_name":"small","runtime":{"name":"jupyter","driver":"simulation","ref":"jupyter","accelerator":"cpu","requires":[],"catalog_digest":"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd","kind":"notebook","source":"driver_refs","model_formats":[]},"resources":{"cpu_milli":1000,"memory_bytes":1073741824,"disk_bytes":0,"devices":[],"metal":false},"environment":{},"arguments":[],"prepare_seconds":1800.0,"start_seconds":120.0,"stop_seconds":10.0,"limit_seconds":3600.0}',NULL,NULL,'{"reason":"stopped_by_user","machine":null,"subject":null,"requested":null,"capacity":null,"free":null,"unit":null,"position":null,"holders":[],"detail":null}','{"now": false, "explanation": {"reason": "stopped_by_user", "machine": null, "subject": null, "requested": null, "capacity": null, "free": null, "unit": null, "position": null, "holders": [], "detail": null}}',NULL);
INSERT INTO "allocations" VALUES('failed',3,'failed',2,'{"kind":"notebook","owner":"olivia","owner_id":3,"server_name":"","notebook":"3-17","profile":"lab","class_name":"small","runtime":{"name":"jupyter","driver":"native","ref":"jupyter","accelerator":"cuda","requires":[],"catalog_digest":"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd","kind":"notebook","source":"driver_refs","model_formats":[]},"resources":{"cpu_milli":1000,"memory_bytes":1073741824,"disk_bytes":0,"devices":["GPU-1"],"metal":false},"environment":{},"arguments":[],"prepare_seconds":1800.0,"start_seconds":120.0,"stop_seconds":10.0,"limit_seconds":3600.0}',NULL,NULL,'{"reason":"server_exited","machine":null,"subject":null,"requested":null,"capacity":null,"free":null,"unit":null,"position":null,"holders":[],"detail":"exit status 3"}',NULL,NULL);
INSERT INTO "allocations" VALUES('rejected',4,'rejected',1,'{"kind":"notebook","owner":"olivia","owner_id":3,"server_name":"","notebook":"3-17","profile":"lab","class_name":"small","runtime":{"name":"jupyter","driver":"native","ref":"jupyter","accelerator":"cpu","requires":[],"catalog_digest":"dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd","kind":"notebook","source":"driver_refs","model_formats":[]},"resources":{"cpu_milli":1000,"memory_bytes":1073741824,"disk_bytes":0,"devices":[],"metal":false},"environment":{},"arguments":[],"prepare_seconds":1800.0,"start_seconds":120.0,"stop_seconds":10.0,"limit_seconds":3600.0}',NULL,NULL,'{"reason":"cpu_busy","machine":null,"subject":null,"requested":600,"capacity":500,"free":0,"unit":"millicores","position":null,"holders":[],"detail":null}',NULL,NULL);
INSERT INTO "allocations" VALUES('unseen',5,'ended',1,NULL,NULL,NULL,'{"reason":"stopped_by_user","machine":null,"subject":null,"requested":null,"capacity":null,"free":null,"unit":null,"position":null,"holders":[],"detail":null}',NULL,NULL);
CREATE TABLE forgotten (
    allocation TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    forgotten_at REAL NOT NULL
) STRICT;
INSERT INTO "forgotten" VALUES('forgotten',6,1795964400.0);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
INSERT INTO "meta" VALUES('ledger_id','201da8514317d5725d1edef6850cfe02');
INSERT INTO "meta" VALUES('highest_epoch','6');
CREATE TABLE outbox (
    allocation TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    report TEXT NOT NULL,
    PRIMARY KEY (allocation, epoch, seq)
) STRICT;
INSERT INTO "outbox" VALUES('serving-native',1,3,'{"type":"report","allocation":"serving-native","epoch":1,"seq":3,"at":"2026-11-29T15:00:00Z","event":"progress","progress":{"step":"verify_environment","done":5,"total":9,"unit":"files"}}');
INSERT INTO "outbox" VALUES('serving-native',1,4,'{"type":"report","allocation":"serving-native","epoch":1,"seq":4,"at":"2026-11-29T15:00:00Z","event":"serving","url":"http://127.0.0.1:5000/user/olivia/"}');
INSERT INTO "outbox" VALUES('stopping',2,1,'{"type":"report","allocation":"stopping","epoch":2,"seq":1,"at":"2026-11-29T15:00:00Z","event":"accepted"}');
INSERT INTO "outbox" VALUES('stopping',2,2,'{"type":"report","allocation":"stopping","epoch":2,"seq":2,"at":"2026-11-29T15:00:00Z","event":"serving","url":"http://127.0.0.1:5001/"}');
INSERT INTO "outbox" VALUES('stopping',2,3,'{"type":"report","allocation":"stopping","epoch":2,"seq":3,"at":"2026-11-29T15:00:00Z","event":"stopping","explanation":{"reason":"stopped_by_user","holders":[]}}');
INSERT INTO "outbox" VALUES('failed',3,1,'{"type":"report","allocation":"failed","epoch":3,"seq":1,"at":"2026-11-29T15:00:00Z","event":"accepted"}');
INSERT INTO "outbox" VALUES('failed',3,2,'{"type":"report","allocation":"failed","epoch":3,"seq":2,"at":"2026-11-29T15:00:00Z","event":"failed","explanation":{"reason":"server_exited","holders":[],"detail":"exit status 3"}}');
INSERT INTO "outbox" VALUES('rejected',4,1,'{"type":"report","allocation":"rejected","epoch":4,"seq":1,"at":"2026-11-29T15:00:00Z","event":"rejected","explanation":{"reason":"cpu_busy","requested":600,"capacity":500,"free":0,"unit":"millicores","holders":[]}}');
INSERT INTO "outbox" VALUES('unseen',5,1,'{"type":"report","allocation":"unseen","epoch":5,"seq":1,"at":"2026-11-29T15:00:00Z","event":"ended","explanation":{"reason":"stopped_by_user","holders":[]}}');
COMMIT;
PRAGMA user_version=1;
