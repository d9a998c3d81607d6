import { RequestMethod } from '@nestjs/common';
import { METHOD_METADATA } from '@nestjs/common/constants.js';
import { Reflector } from '@nestjs/core';
import { ApiExtension } from '@nestjs/swagger';

/**
 * The rights of a user of a session, each with everything of the one before: look; mend deliveries and subscriptions;
 * change everything.
 */
export const userRoles = ['viewer', 'operator', 'administrator'] as const;

export type UserRole = (typeof userRoles)[number];

export const hasRole = (role: UserRole, needed: UserRole): boolean =>
  userRoles.indexOf(role) >= userRoles.indexOf(needed);

/**
 * The least role of a user who carries out this operation of the admin API in a session. Where it is not said: `viewer`
 * for what only reads (GET), `administrator` for everything else.
 */
export const NeedsUserRole = Reflector.createDecorator<UserRole>();

/** The key of an operation's least role in the OpenAPI document. */
export const leastUserRole = 'x-least-user-role';

/** The least role for the operation of a handler. */
export function leastRoleFor(handler: Function): UserRole {
  const said = Reflect.getMetadata(NeedsUserRole.KEY, handler) as UserRole | undefined;
  const method = Reflect.getMetadata(METHOD_METADATA, handler) as RequestMethod;
  return said ?? (method === RequestMethod.GET ? 'viewer' : 'administrator');
}

/** Of a controller: the document says the least role of each of its operations. */
export const DescribesUserRoles = (): ClassDecorator => (controller) => {
  const { prototype } = controller as unknown as { prototype: object };
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    const handler: unknown = property.value;
    if (typeof handler !== 'function' || !Reflect.hasMetadata(METHOD_METADATA, handler)) continue;
    (ApiExtension(leastUserRole, leastRoleFor(handler)) as MethodDecorator)(prototype, name, property);
  }
};
