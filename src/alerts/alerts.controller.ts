import { Body, Get, Headers, HttpCode, Post, Put, Query } from '@nestjs/common';
import type * as z from 'zod';
import { AuditLog } from '../audit/audit-log.js';
import { AdminController } from '../auth/auth.decorators.js';
import { NeedsUserRole } from '../auth/user-roles.js';
import { Config } from '../config/config.module.js';
import { checkInput } from '../infra/http/check-input.js';
import { requireMatch } from '../infra/http/if-match.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import type { Alert } from './alert.js';
import { alertPage } from './alert-rows.js';
import { readAlertRules, replaceAlertRules } from './alert-rules-rows.js';
import { alertRulesInput, alertRulesOutput, type AlertRules } from './alert-rules.js';
import { alertPageOutput, alertQuery, alertTestOutput, pageToShow, recipientsOutput, testToShow } from './alerts-io.js';
import { NoteSender } from './note-sender.service.js';

@AdminController('alerts')
export class AlertsController {
  constructor(
    private readonly postgres: Postgres,
    private readonly sender: NoteSender,
    private readonly config: Config,
  ) {}

  @Get('alert-rules')
  @AdminOperation({
    id: 'alert_rules_read',
    summary: 'When operators, and owners of subscriptions, are told that something is wrong.',
    description:
      'Where they are told, settings say: ALERT_WEBHOOK_URL, ALERT_MAIL_TO, and `alertEmail` of subscriptions.',
    status: 200,
    answer: alertRulesOutput,
    hasEntityTag: true,
  })
  async readRules(): Promise<AlertRules> {
    return readAlertRules((statement, values) => this.postgres.query(statement, values));
  }

  @Put('alert-rules')
  @AdminOperation({
    id: 'alert_rules_replace',
    summary: 'Replaces the rules.',
    description: 'A field that is left out gets its default. Counts within 15 seconds.',
    body: alertRulesInput,
    status: 200,
    answer: alertRulesOutput,
    hasEntityTag: true,
    honoursIfMatch: true,
  })
  async replaceRules(@Headers('if-match') ifMatch: string | undefined, @Body() body: unknown): Promise<AlertRules> {
    const given = checkInput(alertRulesInput, body);
    return replaceAlertRules(this.postgres, given, (before) => requireMatch(ifMatch, before));
  }

  @Get('alert-recipients')
  @AdminOperation({
    id: 'alert_recipients_read',
    summary: 'Whom this process tells of alerts, as its settings say.',
    status: 200,
    answer: recipientsOutput,
  })
  readRecipients(): z.output<typeof recipientsOutput> {
    const { ALERT_WEBHOOK_URL: url, ALERT_MAIL_TO: mail, EMAIL_HOST: host } = this.config.settings;
    return { webhook: url === undefined ? null : new URL(url).origin, mail: [...mail], canMail: host !== undefined };
  }

  @Get('alerts')
  @AdminOperation({
    id: 'alert_list',
    summary: 'Alerts, those that are over as well; newest first.',
    description: 'Those that are over are kept for RETENTION_DAYS.',
    query: alertQuery,
    status: 200,
    answer: alertPageOutput,
  })
  async list(@Query() query: Record<string, string>): Promise<ReturnType<typeof pageToShow>> {
    const { limit = 50, cursor, ...filter } = checkInput(alertQuery, query);
    // One more than asked for tells whether the list goes on.
    const alerts = await this.postgres.queryAside<Alert>(...alertPage({ ...filter, after: cursor }, limit + 1));
    return pageToShow({ alerts: alerts.slice(0, limit), isMore: alerts.length > limit });
  }

  @Post('alerts/test')
  @HttpCode(200)
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'alert_test',
    summary: 'Sends a test to every operator at once, and answers what came of it.',
    description: 'Takes up to two minutes where a server does not answer. It is tried once.',
    status: 200,
    answer: alertTestOutput,
  })
  async test(): Promise<z.output<typeof alertTestOutput>> {
    const noted = { action: 'alerts.tested', subject: 'alerts', before: {}, after: {} };
    await this.postgres.dataSource.transaction((manager) => AuditLog.note(manager, noted));
    return testToShow(await this.sender.sendTest());
  }
}
