import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Takes what receivers answered out of alerts and the notes about them: both are kept after the answers have gone from
 * the ledger. Of `HTTP 422: text` `HTTP 422` stays. A process of the version before may still write some until it ends;
 * what it writes about an alert that stays open is written anew in the next round. Row locks only, in two small tables.
 */
export class ForgetAnswersInAlerts1763625600031 implements MigrationInterface {
  name = 'ForgetAnswersInAlerts1763625600031';

  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`SET LOCAL lock_timeout = '2s'`);
    await queryRunner.query(String.raw`
      UPDATE alert SET details = jsonb_set(details, '{reason}', to_jsonb(substring(details ->> 'reason' from '^HTTP \d+')))
      WHERE details ->> 'reason' ~ '^HTTP \d+:';

      UPDATE alert_note SET content = jsonb_set(content, '{news}', (
        SELECT jsonb_agg(CASE WHEN news #>> '{details,reason}' ~ '^HTTP \d+:' THEN
            jsonb_set(news, '{details,reason}', to_jsonb(substring(news #>> '{details,reason}' from '^HTTP \d+')))
          ELSE news END ORDER BY place)
        FROM jsonb_array_elements(content -> 'news') WITH ORDINALITY AS each (news, place)
      ))
      WHERE jsonb_path_exists(content, '$.news[*].details.reason ? (@ like_regex "^HTTP [0-9]+:")');
    `);
  }

  /** The answers are in the ledger as long as they are to be. */
  async down(): Promise<void> {}
}
