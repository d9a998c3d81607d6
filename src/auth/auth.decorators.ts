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
import { AuthorInterceptor } from './author.interceptor.js';
import { AuthorizationGuard, callerOf, Needs } from './authorization.guard.js';
import type { Scope } from './scopes.js';
import { DescribesUserRoles, NeededUserRole, type UserRole } from './user-roles.js';

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

/**
 * The least role of a user who carries out this operation of the admin API in a session. Where it is not said: `viewer` for what
 * only reads (GET), `administrator` for everything else.
 */
export const NeedsUserRole = (role: UserRole) => NeededUserRole(role);

/** Changes by the routes of the controller are noted as those of their caller. */
export const Audited = () => UseInterceptors(new AuthorInterceptor());

/** The application that sent the request; for a user in a session, one that stands for the user. */
export const CurrentApplication = createParamDecorator((_: unknown, context: ExecutionContext): Application =>
  callerOf(context.switchToHttp().getRequest<FastifyRequest>()),
);
