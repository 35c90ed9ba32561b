-- Enqueue for programs in any language: outbox.enqueue, with the checks, the digest and the rules of the Go library.
-- Locks: none on existing tables (a new function). Old and new binaries: none of either calls it.

-- +goose Up

SET LOCAL lock_timeout = '5s';

-- Records one effect in the caller's transaction. id and state are those of its message; status is 'recorded', or 'duplicate' when the key
-- is taken by the same content. A key taken by other content raises unique_violation; with allow_conflict it is status 'conflict', nothing is
-- recorded, and the transaction can go on. What is wrong with the arguments raises invalid_parameter_value, which lists all of it; COLUMN is the first one.
-- Times are those of Go's Effect: delay or due_at, not both, the past means now; max_age NULL is none. trace holds traceparent, tracestate and
-- baggage. NULL elsewhere is refused, since an expression that came out NULL is a mistake and must not lose an effect or its tenant.
-- Guard: the unique constraint (tenant, consumer, key). A caller at REPEATABLE READ or above gets 40001 on a concurrent duplicate.
-- Index: message_key_unique; the primary keys for the state of a message that is there, also where the tables were nearly empty when the session planned
-- it. Locks: the rows it inserts. Runs with the caller's rights, which are those of a producer.
-- +goose StatementBegin
CREATE FUNCTION outbox.enqueue(
    consumer text,
    target text,
    kind text,
    key text,
    payload bytea,
    metadata jsonb DEFAULT '{}',
    tenant text DEFAULT '',
    order_key text DEFAULT '',
    priority integer DEFAULT 0,
    delay interval DEFAULT '0',
    due_at timestamptz DEFAULT NULL,
    max_age interval DEFAULT '24 hours',
    trace jsonb DEFAULT NULL,
    max_payload integer DEFAULT 65536,
    allow_conflict boolean DEFAULT false,
    OUT id bigint,
    OUT status text,
    OUT state text
)
LANGUAGE plpgsql
VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $$
DECLARE
    -- What Go's unicode.IsSpace knows.
    spaces CONSTANT text := E' \t\n\x0B\f\r\u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000';
    reserved CONSTANT text[] := ARRAY['traceparent', 'tracestate', 'baggage'];
    never CONSTANT timestamptz := '9999-12-31 00:00:00+00';
    problems text[];
    entries bytea := '';
    entry_count bigint := 0;
    entry_bytes bigint := 0;
    stored_metadata jsonb := enqueue.metadata;
    field text;
    value text;
    trace_bytes integer := 0;
    content bytea;
    first_due timestamptz;
    age bigint;
    same boolean;
BEGIN
    IF jsonb_typeof(enqueue.metadata) = 'object' AND enqueue.metadata <> '{}' THEN
        SELECT
            -- Each part behind its length, in the order of bytes: what Go hashes.
            string_agg(
                int8send(octet_length(m.name)) || convert_to(m.name, 'UTF8') || int8send(octet_length(m.value)) || convert_to(m.value, 'UTF8'),
                ''::bytea ORDER BY m.name COLLATE "C"
            ),
            count(*),
            sum(octet_length(m.name) + octet_length(m.value))
        INTO entries, entry_count, entry_bytes
        FROM jsonb_each_text(enqueue.metadata) AS m (name, value);
    END IF;

    SELECT array_agg(p.field || ' ' || p.problem ORDER BY p.place)
    INTO problems
    FROM (
        SELECT
            v.place,
            v.field,
            CASE
                WHEN v.value IS NULL THEN 'is null'
                WHEN v.value = '*' AND v.field IN ('consumer', 'target', 'kind', 'tenant') THEN 'is the wildcard *, which no name may be'
                WHEN btrim(v.value, spaces) = '' AND (v.value <> '' OR v.required) THEN 'is blank'
                WHEN octet_length(v.value) > v.longest THEN format('has %s bytes, at most %s are allowed', octet_length(v.value), v.longest)
            END AS problem
        FROM (
            VALUES
                (1, 'tenant', enqueue.tenant, 128, false),
                (2, 'consumer', enqueue.consumer, 128, true),
                (3, 'target', enqueue.target, 128, true),
                (4, 'kind', enqueue.kind, 128, true),
                (5, 'key', enqueue.key, 255, true),
                (6, 'order_key', enqueue.order_key, 128, false)
        ) AS v (place, field, value, longest, required)
        UNION ALL
        SELECT v.place, v.field, v.problem
        FROM (
            VALUES
                (7, 'max_payload', CASE
                    WHEN enqueue.max_payload IS NULL THEN 'is null'
                    WHEN enqueue.max_payload NOT BETWEEN 1 AND 1048576 THEN 'is not between 1 and 1048576 bytes'
                END),
                (8, 'payload', CASE
                    WHEN enqueue.payload IS NULL THEN 'is null'
                    WHEN octet_length(enqueue.payload) > LEAST(enqueue.max_payload, 1048576)
                        THEN format('has %s bytes, at most %s are allowed', octet_length(enqueue.payload), LEAST(enqueue.max_payload, 1048576))
                END),
                (9, 'metadata', CASE
                    WHEN enqueue.metadata IS NULL THEN 'is null'
                    WHEN jsonb_typeof(enqueue.metadata) <> 'object' THEN 'is not a JSON object'
                    WHEN entry_count > 64 THEN format('has %s entries, at most 64 are allowed', entry_count)
                    WHEN entry_bytes > 8192 THEN format('has %s bytes, at most 8192 are allowed', entry_bytes)
                END),
                (11, 'priority', CASE
                    WHEN enqueue.priority IS NULL THEN 'is null'
                    WHEN enqueue.priority NOT BETWEEN -32768 AND 32767 THEN 'is not between -32768 and 32767'
                END),
                (12, 'delay', CASE
                    WHEN enqueue.delay IS NULL THEN 'is null'
                    WHEN enqueue.delay < interval '0' THEN format('is negative: %s', enqueue.delay)
                    WHEN enqueue.delay > interval '1000000 days' THEN format('is longer than a million days: %s', enqueue.delay)
                END),
                (13, 'due_at', CASE
                    WHEN enqueue.due_at IS NOT NULL AND enqueue.delay <> interval '0' THEN 'is set beside delay; use one of them'
                    WHEN enqueue.due_at NOT BETWEEN '2000-01-01 00:00:00+00' AND never THEN 'is not between the years 2000 and 9999'
                END),
                (14, 'max_age', CASE
                    -- In seconds: comparing intervals takes a year for 360 days.
                    WHEN extract(epoch FROM enqueue.max_age) <= 0 THEN format('is not positive: %s; NULL is none', enqueue.max_age)
                    WHEN extract(epoch FROM enqueue.max_age) > 3155760000 THEN 'is longer than 100 years; NULL is none'
                END),
                (15, 'allow_conflict', CASE WHEN enqueue.allow_conflict IS NULL THEN 'is null' END)
        ) AS v (place, field, problem)
        UNION ALL
        SELECT
            10,
            format('metadata[%s]', to_json(m.name)),
            CASE
                WHEN btrim(m.name, spaces) = '' THEN 'has a blank name'
                WHEN m.name = ANY(reserved) THEN 'is the library''s; give it as trace'
                ELSE 'is not a string'
            END
        FROM jsonb_each(CASE jsonb_typeof(enqueue.metadata) WHEN 'object' THEN enqueue.metadata END) AS m (name, value)
        WHERE btrim(m.name, spaces) = '' OR m.name = ANY(reserved) OR jsonb_typeof(m.value) <> 'string'
    ) AS p
    WHERE p.problem IS NOT NULL;

    IF problems IS NOT NULL THEN
        RAISE EXCEPTION 'enqueue: %', array_to_string(problems, '; ') USING
            ERRCODE = 'invalid_parameter_value', COLUMN = substring(problems[1] FROM '^[a-z_]+');
    END IF;

    -- A trace is no reason to refuse an effect: what does not fit is left out, and it is no part of the digest.
    FOREACH field IN ARRAY reserved LOOP
        value := CASE jsonb_typeof(enqueue.trace -> field) WHEN 'string' THEN enqueue.trace ->> field END;
        IF value <> '' AND trace_bytes + octet_length(field) + octet_length(value) <= 2048 THEN
            trace_bytes := trace_bytes + octet_length(field) + octet_length(value);
            stored_metadata := stored_metadata || jsonb_build_object(field, value);
        END IF;
    END LOOP;

    content := sha256(
        E'\\x01'::bytea
        || int8send(octet_length(enqueue.target)) || convert_to(enqueue.target, 'UTF8')
        || int8send(octet_length(enqueue.kind)) || convert_to(enqueue.kind, 'UTF8')
        || int8send(octet_length(enqueue.order_key)) || convert_to(enqueue.order_key, 'UTF8')
        || int8send(octet_length(enqueue.payload)) || enqueue.payload
        || entries
    );
    first_due := LEAST(GREATEST(enqueue.due_at, statement_timestamp() + enqueue.delay), never);
    age := COALESCE(round(extract(epoch FROM enqueue.max_age) * 1000000), 0);

    -- The key may be free again when the loser looks.
    FOR try IN 1..3 LOOP
        INSERT INTO outbox.message AS m (tenant, consumer, target, kind, key, order_key, priority, digest, metadata, payload, max_age)
        VALUES (
            enqueue.tenant, enqueue.consumer, enqueue.target, enqueue.kind, enqueue.key, enqueue.order_key, enqueue.priority, content,
            CASE WHEN stored_metadata <> '{}' THEN stored_metadata::text ELSE '' END, enqueue.payload, age
        )
        ON CONFLICT ON CONSTRAINT message_key_unique DO NOTHING
        RETURNING m.id INTO enqueue.id;
        IF FOUND THEN
            INSERT INTO outbox.queue (message_id, consumer, target, kind, tenant, order_key, priority, due_at, born_at, expires_at)
            VALUES (
                enqueue.id, enqueue.consumer, enqueue.target, enqueue.kind, enqueue.tenant, enqueue.order_key, enqueue.priority, first_due, first_due,
                CASE WHEN age = 0 THEN never ELSE LEAST(first_due + age * interval '1 microsecond', never) END
            );
            enqueue.status := 'recorded';
            enqueue.state := 'pending';
            RETURN;
        END IF;
        SELECT
            m.id,
            m.digest = content,
            COALESCE(
                (SELECT s.outcome FROM outbox.settlement AS s WHERE s.message_id = m.id),
                (
                    SELECT CASE WHEN q.state = 1 THEN 'parked' WHEN q.leased_until > clock_timestamp() THEN 'leased' ELSE 'pending' END
                    FROM outbox.queue AS q
                    WHERE q.message_id = m.id
                ),
                'pending'
            )
        INTO enqueue.id, same, enqueue.state
        FROM outbox.message AS m
        WHERE m.tenant = enqueue.tenant AND m.consumer = enqueue.consumer AND m.key = enqueue.key;
        IF FOUND THEN
            enqueue.status := CASE WHEN same THEN 'duplicate' ELSE 'conflict' END;
            IF NOT same AND NOT enqueue.allow_conflict THEN
                RAISE EXCEPTION 'enqueue: key % is taken by other content: message % (%)', to_json(enqueue.key), enqueue.id, enqueue.state USING
                    ERRCODE = 'unique_violation', TABLE = 'message', COLUMN = 'key', CONSTRAINT = 'message_key_unique',
                    HINT = 'One key is one effect. Give the other effect a key of its own, or pass allow_conflict => true and read status.';
            END IF;
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'enqueue: key % was taken and free again 3 times; try the transaction again', to_json(enqueue.key)
        USING ERRCODE = 'serialization_failure';
END
$$;
-- +goose StatementEnd

REVOKE ALL ON FUNCTION outbox.enqueue FROM PUBLIC;

-- +goose Down

SET LOCAL lock_timeout = '5s';

DROP FUNCTION outbox.enqueue;
