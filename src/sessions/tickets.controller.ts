import { Header, Post, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import type { Application } from '../auth/application.js';
import { AdminController, CurrentApplication } from '../auth/auth.decorators.js';
import { userOf } from '../auth/authorization.guard.js';
import { originOf } from '../infra/http/origin.js';
import { PermissionProblem } from '../infra/http/problem.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { SignIn } from './sign-in.service.js';

const ticketOutput = z
  .strictObject({
    ticket: z.string(),
    url: z.url().describe('To open in a browser on the same machine: it signs in, once.'),
    expiresAt: z.iso.datetime(),
  })
  .meta({ id: 'SignInTicket' });

@AdminController('sessions', 'sign-in-tickets')
export class TicketsController {
  constructor(private readonly signIn: SignIn) {}

  @Post()
  @Header('cache-control', 'no-store')
  @AdminOperation({
    id: 'sign_in_ticket_create',
    summary: 'A ticket by which a browser on the same machine signs in to the console as an administrator, once.',
    description:
      'For five minutes, at `/console/enter?ticket=…`, from a loopback address and through no proxy. Only for the holder of a token: a session gives no other sessions.',
    status: 201,
    answer: ticketOutput,
  })
  async create(
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
  ): Promise<z.output<typeof ticketOutput>> {
    if (userOf(request)) throw new PermissionProblem('permission_denied', 'Only for the holder of a token.');
    const { ticket, expiresAt } = await this.signIn.makeTicket(application);
    const url = `${originOf(request)}/console/enter?ticket=${ticket}`;
    return { ticket, url, expiresAt: expiresAt.toISOString() };
  }
}
