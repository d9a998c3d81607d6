import {
  applyDecorators,
  Controller,
  createParamDecorator,
  UseGuards,
  UseInterceptors,
  type ExecutionContext,
} from '@nestjs/common';
import { ApiBearerAuth, ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import type { Application } from './application.js';
import { NotesRequestId } from '../openapi/request-id-headers.js';
import { AuthorInterceptor } from './author.interceptor.js';
import { AuthorizationGuard, callerOf, Needs } from './authorization.guard.js';
import type { Scope } from './scopes.js';
import { DescribesUserRoles } from './user-roles.js';

/** The caller needs any of these scopes, or is a superuser. */
export const RequireScope = (...scopes: Scope[]) => applyDecorators(Needs(scopes), UseGuards(AuthorizationGuard));

/** A part of the admin API: the caller must be a superuser, or a user in a session whose role is high enough. */
export const AdminController = (tag: string, path = '') =>
  applyDecorators(
    Controller(`admin/v1/${path}`),
    ApiTags(tag),
    ApiBearerAuth(),
    Needs('superuser'),
    UseGuards(AuthorizationGuard),
    Audited(),
    DescribesUserRoles(),
  );

/** Changes by the routes of the controller are noted as those of their caller. */
export const Audited = () => applyDecorators(UseInterceptors(new AuthorInterceptor()), NotesRequestId());

/** The application that sent the request; for a user in a session, one that stands for the user. */
export const CurrentApplication = createParamDecorator((_: unknown, context: ExecutionContext): Application =>
  callerOf(context.switchToHttp().getRequest<FastifyRequest>()),
);
