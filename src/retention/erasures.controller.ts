import { Body, Get, Param, Post, Query } from '@nestjs/common';
import type * as z from 'zod';
import { AdminController } from '../auth/auth.decorators.js';
import { checkInput } from '../infra/http/check-input.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import {
  confirmationInput,
  erasureOutput,
  erasurePageOutput,
  erasuresQuery,
  erasureToShow,
  newErasureInput,
} from './erasure-io.js';
import { Erasures } from './erasures.service.js';

type Shown = z.output<typeof erasureOutput>;

const unknownErasure = { 404: 'There is no such erasure.' };

@AdminController('retention', 'erasures')
export class ErasuresController {
  constructor(private readonly erasures: Erasures) {}

  @Post()
  @AdminOperation({
    id: 'erasure_create',
    summary:
      'Erases the body of a notification, or counts those about a main object, to be erased when that is confirmed.',
    description:
      'With a body go the answers of receivers, who may have repeated it. Deliveries that are not finished are cancelled. The rest of the row stays until its day is dropped. A dispatcher works it off; see docs/running.md for what is left elsewhere.',
    body: newErasureInput,
    status: 202,
    answer: erasureOutput,
    problems: { 404: 'There is no such notification, or it is older than the retention.' },
  })
  async create(@Body() body: unknown): Promise<Shown> {
    const { notification, mainObject } = checkInput(newErasureInput, body);
    const erasure =
      notification === undefined
        ? await this.erasures.aboutMainObject(mainObject!)
        : await this.erasures.ofNotification(notification);
    return erasureToShow(erasure);
  }

  @Get()
  @AdminOperation({
    id: 'erasure_list',
    summary: 'Erasures, newest first.',
    query: erasuresQuery,
    status: 200,
    answer: erasurePageOutput,
  })
  async list(@Query() query: Record<string, string>): Promise<z.output<typeof erasurePageOutput>> {
    const { limit = 50, cursor } = checkInput(erasuresQuery, query);
    // One more than asked for tells whether the list goes on.
    const found = await this.erasures.list(limit + 1, cursor);
    const page = found.slice(0, limit);
    return {
      erasures: page.map(erasureToShow),
      nextCursor: found.length > limit ? page.at(-1)!.id : null,
    };
  }

  @Get(':erasureId')
  @AdminOperation({
    id: 'erasure_read',
    summary: 'One erasure, and how far it is.',
    status: 200,
    answer: erasureOutput,
    problems: unknownErasure,
  })
  async read(@Param('erasureId', ResourceId) erasureId: string): Promise<Shown> {
    return erasureToShow(await this.erasures.get(erasureId));
  }

  @Post(':erasureId/confirm')
  @AdminOperation({
    id: 'erasure_confirm',
    summary: 'Has what an erasure counted erased.',
    description: 'Those about the same main object that were accepted between count and confirmation are erased too.',
    body: confirmationInput,
    status: 202,
    answer: erasureOutput,
    problems: {
      ...unknownErasure,
      409: '`erasure-not-counted`: it is still counting, or was confirmed or abandoned before. `confirm-mismatch`: it found another number.',
    },
  })
  async confirm(@Param('erasureId', ResourceId) erasureId: string, @Body() body: unknown): Promise<Shown> {
    const { confirm } = checkInput(confirmationInput, body);
    return erasureToShow(await this.erasures.confirm(erasureId, confirm));
  }
}
