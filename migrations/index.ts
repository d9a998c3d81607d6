import { CreateCatalogue1763625600000 } from './1763625600000-create-catalogue.js';
import { CreateLedger1763625600001 } from './1763625600001-create-ledger.js';
import { CreateMoment1763625600002 } from './1763625600002-create-moment.js';
import { CreateSigningKeys1763625600003 } from './1763625600003-create-signing-keys.js';
import { ProtectSecrets1763625600004 } from './1763625600004-protect-secrets.js';
import { CreateAuditLog1763625600005 } from './1763625600005-create-audit-log.js';
import { FindNotifications1763625600006 } from './1763625600006-find-notifications.js';
import { CreateReplays1763625600007 } from './1763625600007-create-replays.js';
import { AddTraceParent1763625600008 } from './1763625600008-add-trace-parent.js';
import { CreateAlerts1763625600009 } from './1763625600009-create-alerts.js';
import { CreateLiveEvents1763625600011 } from './1763625600011-create-live-events.js';
import { CreateRetention1763625600012 } from './1763625600012-create-retention.js';
import { CreateSessions1763625600014 } from './1763625600014-create-sessions.js';
import { CreateActivity1763625600015 } from './1763625600015-create-activity.js';
import { TellOfFailing1763625600016 } from './1763625600016-tell-of-failing.js';
import { DateSecrets1763625600017 } from './1763625600017-date-secrets.js';
import { OneProbeAtATime1763625600018 } from './1763625600018-one-probe-at-a-time.js';
import { TellOfFresh1763625600019 } from './1763625600019-tell-of-fresh.js';
import { KeepSchedules1763625600020 } from './1763625600020-keep-schedules.js';
import { FindOverdue1763625600021 } from './1763625600021-find-overdue.js';
import { DueInTurn1763625600022 } from './1763625600022-due-in-turn.js';
import { FindGone1763625600023 } from './1763625600023-find-gone.js';
import { CountReleased1763625600024 } from './1763625600024-count-released.js';
import { RemoveChannels1763625600026 } from './1763625600026-remove-channels.js';
import { ForgetAnswersInAlerts1763625600031 } from './1763625600031-forget-answers-in-alerts.js';
import { FindScheduled1763625600032 } from './1763625600032-find-scheduled.js';
import { CountClaimed1763625600041 } from './1763625600041-count-claimed.js';
import { FindNotMade1763625600042 } from './1763625600042-find-not-made.js';
import { OrderNotes1763625600043 } from './1763625600043-order-notes.js';
import { FindLongSubjects1763625600044 } from './1763625600044-find-long-subjects.js';
import { FindOwned1763625600046 } from './1763625600046-find-owned.js';
import { DateDrops1763625600047 } from './1763625600047-date-drops.js';
import { MeasureEntries1763625600048 } from './1763625600048-measure-entries.js';
import { KeyLiveListener1763625600049 } from './1763625600049-key-live-listener.js';
import { DateCounts1763625600050 } from './1763625600050-date-counts.js';
import { SpanReplays1763625600051 } from './1763625600051-span-replays.js';
import { TellOfTimeout1763625600052 } from './1763625600052-tell-of-timeout.js';

/**
 * In the order they run: TypeORM goes by the time in their names, whatever the order here. Plain SQL; a released one is
 * never edited.
 */
export const migrations = [
  CreateCatalogue1763625600000,
  CreateLedger1763625600001,
  CreateMoment1763625600002,
  CreateSigningKeys1763625600003,
  ProtectSecrets1763625600004,
  CreateAuditLog1763625600005,
  FindNotifications1763625600006,
  CreateReplays1763625600007,
  AddTraceParent1763625600008,
  CreateAlerts1763625600009,
  CreateLiveEvents1763625600011,
  CreateRetention1763625600012,
  CreateSessions1763625600014,
  CreateActivity1763625600015,
  TellOfFailing1763625600016,
  DateSecrets1763625600017,
  OneProbeAtATime1763625600018,
  TellOfFresh1763625600019,
  KeepSchedules1763625600020,
  FindOverdue1763625600021,
  DueInTurn1763625600022,
  FindGone1763625600023,
  CountReleased1763625600024,
  RemoveChannels1763625600026,
  ForgetAnswersInAlerts1763625600031,
  FindScheduled1763625600032,
  CountClaimed1763625600041,
  FindNotMade1763625600042,
  OrderNotes1763625600043,
  FindLongSubjects1763625600044,
  FindOwned1763625600046,
  DateDrops1763625600047,
  MeasureEntries1763625600048,
  KeyLiveListener1763625600049,
  DateCounts1763625600050,
  SpanReplays1763625600051,
  TellOfTimeout1763625600052,
];
