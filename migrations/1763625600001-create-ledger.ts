import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The ledger. All three tables are partitioned by day of the notification's UUIDv7, so that retention drops partitions;
 * the program itself makes them (src/ledger/partitions.ts). New tables only: no lock on anything in use.
 */
export class CreateLedger1763625600001 implements MigrationInterface {
  name = 'CreateLedger1763625600001';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TYPE delivery_state AS ENUM
        ('queued', 'waiting', 'held', 'sending', 'delivered', 'failed', 'expired', 'cancelled', 'unknown');
      CREATE TYPE held_reason AS ENUM ('endpoint-busy', 'endpoint-parked', 'paused', 'rate', 'order');

      CREATE TABLE notification (
        id          uuid NOT NULL PRIMARY KEY,
        channel     text NOT NULL,
        publisher   text NOT NULL,
        -- the exact text that is sent: what a receiver gets is these bytes
        body        text NOT NULL,
        -- a publisher asked not to send it earlier; until then it may still be replaced
        not_before  timestamptz,
        accepted_at timestamptz NOT NULL DEFAULT now()
      ) PARTITION BY RANGE (id);

      CREATE TABLE delivery (
        notification_id uuid NOT NULL,
        subscription_id uuid NOT NULL,
        state           delivery_state NOT NULL,
        -- rises whenever the ledger hands the delivery out again, or an operator cancels or retries it
        generation      int NOT NULL DEFAULT 1,
        -- HTTP calls made, all in all
        attempts        int NOT NULL DEFAULT 0,
        -- failed calls that count for the retry schedule; a replay starts again at 0
        failures        int NOT NULL DEFAULT 0,
        -- times an operator had an ended delivery sent again; part of the idempotency key
        replays         int NOT NULL DEFAULT 0,
        -- waiting: when it is due. In hand: end of the lease. Sending: when its outcome counts as unknown.
        -- Held, in the queue, and ended: null
        next_at         timestamptz,
        -- held: why. It stays while the delivery is on its way after its release, so that those can be counted; then null
        held_for        held_reason,
        -- held: since when
        held_since      timestamptz,
        -- when it is no longer worth sending; null: always
        expires_at      timestamptz,
        -- queued: when it was handed to the queue; null once it is in a process' hand and the queue has forgotten it
        queued_at       timestamptz,
        -- the process that has it in its memory, as its queue or in hand; its end frees the delivery before the lease does
        process         text,
        last_status     int,
        last_error      text,
        ended_at        timestamptz,
        -- the object of its notification, where its subscription keeps order by object (table turn); null: it keeps none
        object_key      uuid,
        -- 0: it has the turn of its object, until that is passed on. Above: its place in line. Null: it is not in line. -1: it ended
        -- with the turn and is sent again, before it has lined up: the turn may still be its own
        turn_nr         bigint,
        PRIMARY KEY (notification_id, subscription_id)
      ) PARTITION BY RANGE (notification_id);
      -- One index for each state that is not an end: each is only as large as the number of deliveries in that state, however
      -- many deliveries are kept. delivery_process is for those of a process.
      CREATE INDEX delivery_due ON delivery (next_at) WHERE state = 'waiting';
      -- Held ones are released by subscription, oldest first; those that wait for their turn, by the end of the one before them.
      CREATE INDEX delivery_held ON delivery (subscription_id, notification_id)
        WHERE state = 'held' AND held_for <> 'order';
      CREATE INDEX delivery_held_expiry ON delivery (expires_at)
        WHERE state = 'held' AND held_for <> 'order' AND expires_at IS NOT NULL;
      -- In line behind another one about the same object.
      CREATE INDEX delivery_in_line ON delivery (subscription_id, object_key, turn_nr)
        WHERE state = 'held' AND held_for = 'order';
      -- Due, or to be due, and not in line yet: scheduled, or retried by an operator.
      CREATE INDEX delivery_not_in_line ON delivery (next_at)
        WHERE state = 'waiting' AND object_key IS NOT NULL AND turn_nr IS DISTINCT FROM 0;
      -- Ended, and its turn, if it still had it, was not passed on yet.
      CREATE INDEX delivery_turn_left ON delivery (ended_at) WHERE turn_nr <= 0 AND ended_at IS NOT NULL;
      -- Released and not yet settled: a subscription gets more when these are few.
      CREATE INDEX delivery_released ON delivery (subscription_id) WHERE state = 'queued' AND held_for IS NOT NULL;
      -- The same ones by subscription, which may be deleted or disabled with a million of them. The usual delivery, which is
      -- queued and then delivered, is never in either. In a partition of which the planner knows nothing both cost the same, so the
      -- conditions let it take the right one: a range is not what the other index asks for, and only a statement that names a
      -- subscription implies that there is one.
      CREATE INDEX delivery_unsent ON delivery (subscription_id, state, notification_id)
        WHERE state BETWEEN 'waiting' AND 'held' AND subscription_id IS NOT NULL;
      CREATE INDEX delivery_queued ON delivery (queued_at) WHERE state = 'queued';
      CREATE INDEX delivery_sending ON delivery (next_at) WHERE state = 'sending';
      CREATE INDEX delivery_process ON delivery (process) WHERE process IS NOT NULL;
      -- Dead letters, by subscription: what an operator looks for.
      CREATE INDEX delivery_dead ON delivery (subscription_id, state, notification_id)
        WHERE state IN ('failed', 'expired', 'unknown');
      -- All of them, newest first: after a long outage there are millions, too many to sort for each page.
      CREATE INDEX delivery_dead_newest ON delivery (state, notification_id, subscription_id)
        WHERE state IN ('failed', 'expired', 'unknown');

      -- Subscriptions that have deliveries held for another reason than their order, or may have: the dispatchers release those.
      -- Small: a row goes when nothing is held for its subscription any more.
      CREATE TABLE held_subscription (
        subscription_id uuid PRIMARY KEY,
        -- how many may be released and not yet settled (src/ledger/release-window.ts), and when it was last halved
        release_window  int NOT NULL DEFAULT 16,
        shrunk_at       timestamptz,
        -- how many there were after the last look
        outstanding     int NOT NULL DEFAULT 0,
        -- more arrived than its endpoint could take: new ones are held as well, behind those
        is_backlog      boolean NOT NULL DEFAULT false,
        -- calls it may still be given by its rate, and until when that was reckoned
        rate_credit     float8 NOT NULL DEFAULT 0,
        credited_at     timestamptz NOT NULL DEFAULT now(),
        -- when one was last held, to a few seconds; the row may go only long after
        held_at         timestamptz NOT NULL DEFAULT now(),
        -- when a dispatcher looks at it again
        look_at         timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX held_subscription_look ON held_subscription (look_at);

      -- Endpoints in trouble: an origin that does not answer, or a callback URL that answers with errors,
      -- or not at all while its origin does. Their deliveries are held.
      CREATE TABLE endpoint (
        -- the origin, or the callback URL
        address     text PRIMARY KEY,
        opened_at   timestamptz NOT NULL DEFAULT now(),
        reason      text NOT NULL,
        -- calls that failed one after the other before it was opened
        failures    int NOT NULL,
        -- calls that were made since to find out whether it has recovered
        probes      int NOT NULL DEFAULT 0,
        next_probe_at timestamptz NOT NULL
      );

      -- For a subscription that keeps order by object: the one delivery of each object that may be sent. Those behind it are held.
      -- A transaction that accepts one of the same object locks the row, and so waits for one that passes the turn on.
      CREATE TABLE turn (
        subscription_id uuid NOT NULL,
        object_key      uuid NOT NULL,
        notification_id uuid NOT NULL,
        -- how many have lined up behind it since there is this row: 0 means that nobody has
        lined_up        int NOT NULL,
        PRIMARY KEY (subscription_id, object_key)
      ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);
      CREATE SEQUENCE turn_nr;
      -- The next in line. Not partitioned, so that it is found without a look into each day; a row may outlive its delivery's being
      -- in line, and is then passed over (src/ledger/pass-turn.ts).
      CREATE TABLE in_line (
        subscription_id uuid NOT NULL,
        object_key      uuid NOT NULL,
        turn_nr         bigint NOT NULL,
        notification_id uuid NOT NULL,
        PRIMARY KEY (subscription_id, object_key, turn_nr)
      ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

      -- Subscriptions that keep order no more: a rule of the dispatcher is still to free what is in line for them.
      CREATE TABLE order_ending (
        subscription_id uuid PRIMARY KEY,
        -- the catalogue version of the change
        version         bigint NOT NULL
      );

      -- Subscriptions that were deleted or disabled, and whose waiting deliveries a rule of the dispatcher is still to end.
      CREATE TABLE subscription_ending (
        subscription_id uuid PRIMARY KEY,
        -- the state that its deliveries get
        state           delivery_state NOT NULL CHECK (state IN ('cancelled', 'failed')),
        -- the catalogue version of the change: tells this row from one of a later change
        version         bigint NOT NULL
      );

      -- Deliveries that paused subscriptions held when an operator had them dropped, and that a rule of the dispatcher is still to cancel.
      CREATE TABLE held_drop (
        subscription_id uuid PRIMARY KEY,
        -- notification_id of the newest of them
        up_to           uuid NOT NULL
      );

      CREATE TABLE attempt (
        notification_id uuid NOT NULL,
        subscription_id uuid NOT NULL,
        generation      int NOT NULL,
        -- counts from 1
        number          int NOT NULL,
        started_at      timestamptz NOT NULL,
        duration_ms     int NOT NULL,
        status          int,
        error           text,
        -- null: over a connection that was kept open
        connect_ms      int,
        first_byte_ms   int,
        -- of an attempt that was no success: the address called, headers of the answer, the beginning of its body
        details         json,
        -- a result written twice stays one attempt: the answer to the first write was lost, or a repeated message found its seal
        PRIMARY KEY (notification_id, subscription_id, number, started_at)
      ) PARTITION BY RANGE (notification_id);

      -- Keys under which something happens once: a request (operation 'publish', 'put', …) or content
      -- ('deduplicate', application ''). Reserved by the statement that accepts.
      CREATE TABLE once_key (
        application  text NOT NULL,
        operation    text NOT NULL,
        key          text NOT NULL,
        -- the notification, or what else was created
        result_id    uuid NOT NULL,
        request_hash text,
        -- the content had been published before, as the notification result_id
        is_duplicate boolean NOT NULL DEFAULT false,
        expires_at   timestamptz NOT NULL,
        PRIMARY KEY (application, operation, key)
      );
      CREATE INDEX once_key_expiry ON once_key (expires_at);
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(
      `DROP TABLE once_key, held_drop, subscription_ending, order_ending, in_line, turn, endpoint, held_subscription, attempt, delivery, notification;
       DROP SEQUENCE turn_nr; DROP TYPE delivery_state, held_reason`,
    );
  }
}
