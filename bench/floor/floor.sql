-- The floor: the library's own statements in a loop inside the server, in transactions like the library's, with no driver and no network.
--
-- What stands in braces is put in by createFloor: a statement of queries/postgres by its name, each of its parameters a variable named arg_
-- and the parameter's name, and the declarations of these variables. The procedures do what a client does around the statements: they
-- build the arrays and look at every row.

CREATE PROCEDURE floor_enqueue(total integer, size integer) LANGUAGE plpgsql AS $procedure$
DECLARE
    {variables}
    row_stored record;
BEGIN
    arg_tenants := array_fill(''::text, ARRAY[size]);
    arg_consumers := array_fill('{consumer}'::text, ARRAY[size]);
    arg_targets := array_fill('{target}'::text, ARRAY[size]);
    arg_kinds := array_fill('{kind}'::text, ARRAY[size]);
    arg_order_keys := array_fill(''::text, ARRAY[size]);
    arg_priorities := array_fill(0::smallint, ARRAY[size]);
    arg_digests := array_fill(decode(repeat('d1', 32), 'hex'), ARRAY[size]);
    arg_metadatas := array_fill(''::text, ARRAY[size]);
    arg_payloads := array_fill(decode(repeat('a7', {payload}), 'hex'), ARRAY[size]);
    arg_source_positions := array_fill(0::bigint, ARRAY[size]);
    arg_source_event_ids := array_fill(''::text, ARRAY[size]);
    arg_max_ages := array_fill({max_age}::bigint, ARRAY[size]);
    arg_due_ats := array_fill('0001-01-01 00:00:00+00'::timestamptz, ARRAY[size]);
    arg_delays := array_fill(0::bigint, ARRAY[size]);
    FOR start IN 1 .. total BY size LOOP
        arg_keys := ARRAY(SELECT 'order-' || lpad(i::text, 10, '0') FROM generate_series(start, start + size - 1) AS i);
        FOR row_stored IN {Enqueue} LOOP
        END LOOP;
        COMMIT;
    END LOOP;
END
$procedure$;

CREATE PROCEDURE floor_drain(size integer, OUT drained integer) LANGUAGE plpgsql AS $procedure$
DECLARE
    {variables}
    row_leased record;
    row_settled record;
BEGIN
    drained := 0;
    arg_consumer := '{consumer}';
    arg_target := '{target}';
    arg_kinds := ARRAY['{kind}'];
    arg_tenants := ARRAY[''];
    arg_priorities := ARRAY[0];
    arg_after_dues := ARRAY['0001-01-01 00:00:00+00'::timestamptz];
    arg_after_ids := ARRAY[0];
    arg_attempt_limits := ARRAY[12];
    arg_max_ages := ARRAY[{max_age}];
    arg_all_tenants := true;
    arg_lease := {lease};
    arg_longest_lease := {longest_lease};
    arg_examine := 10 * size;
    arg_quota := size;
    arg_max_rows := size;
    arg_worker := 1;
    arg_accept_late := false;
    LOOP
        PERFORM * FROM ({Settings}) AS s;
        arg_token := decode(md5(random()::text), 'hex');
        arg_ids := '{}';
        FOR row_leased IN {LeaseDue} LOOP
            IF row_leased.fate = 1 THEN
                arg_ids := arg_ids || row_leased.id;
                IF (row_leased.due_at, row_leased.id) > (arg_after_dues[1], arg_after_ids[1]) THEN
                    arg_after_dues[1] := row_leased.due_at;
                    arg_after_ids[1] := row_leased.id;
                END IF;
            END IF;
        END LOOP;
        COMMIT;
        EXIT WHEN arg_ids = '{}';
        arg_ids := ARRAY(SELECT i FROM unnest(arg_ids) AS i ORDER BY i);
        arg_tokens := decode(repeat(encode(arg_token, 'hex'), cardinality(arg_ids)), 'hex');
        arg_results := '{}';
        PERFORM * FROM ({Settings}) AS s;
        FOR row_settled IN {SettleDelivered} LOOP
            drained := drained + 1;
        END LOOP;
        COMMIT;
    END LOOP;
END
$procedure$;
