import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { AlertRules } from '../alerts/alert-rules.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { KeptAnswers } from '../catalogue/kept-answers.service.js';
import type { Long } from '../catalogue/long-json.js';
import { Export } from './export.service.js';
import { commentOnLeftOut } from './left-out.js';
import { toYamlInParts } from './yaml-text.js';

/** Characters that are escaped in one go. */
const together = 65_536;

/**
 * The configuration, made once for all who ask for it while nothing changes. In a line of its own: the text of a large
 * one takes 20 s, and lists do not wait for that.
 */
@Injectable()
export class KeptExports implements OnModuleDestroy {
  private readonly kept: KeptAnswers;

  constructor(
    catalogue: Catalogue,
    private readonly exported: Export,
  ) {
    this.kept = new KeptAnswers(catalogue);
  }

  onModuleDestroy(): void {
    this.kept.onModuleDestroy();
  }

  json(caller: string, reply: FastifyReply): Promise<Buffer> {
    return this.export('json', caller, reply, async (rules) => {
      const { applications, channels, subscriptions, ...others } = await this.exported.read(rules);
      return {
        before: `${JSON.stringify({ applications, channels }).slice(0, -1)},"subscriptions":[`,
        items: subscriptions,
        present: (subscription) => subscription,
        after: `],${JSON.stringify(others).slice(1)}`,
      };
    });
  }

  /** `{"text": …}`, in YAML. */
  text(caller: string, reply: FastifyReply): Promise<Buffer> {
    return this.export('text', caller, reply, async (rules) => {
      const exported = await this.exported.read(rules);
      return inParts(commentOnLeftOut(exported) + (await toYamlInParts(exported)));
    });
  }

  private async export(
    form: string,
    caller: string,
    reply: FastifyReply,
    list: (rules: AlertRules) => Promise<Long<object>>,
  ): Promise<Buffer> {
    const rules = await this.exported.alertRules();
    return this.kept.answer(`${form} ${JSON.stringify(rules)}`, caller, reply, () => list(rules));
  }
}

/** Of a text of 95 MB as a whole there would be several copies at once, each made in one go. */
function* inParts(text: string): Generator<string> {
  yield '{"text":"';
  // A character of two units that is cut is two escapes, which are read as it.
  for (let from = 0; from < text.length; from += together)
    yield JSON.stringify(text.slice(from, from + together)).slice(1, -1);
  yield '"}';
}
