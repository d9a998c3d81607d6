import type { components } from '../../../generated/admin-api.d.ts';
import { answerAndTagOf, answerOf, api } from '../../api/client.ts';

export type Application = components['schemas']['Application'];
type ApplicationChanges = components['schemas']['ApplicationChanges'];

/** One that was made, as it is shown once. */
export interface ShownSecret {
  clientId: string;
  secret: string;
}

export const applicationsKey = ['applications'] as const;
export const applicationKey = (id: string) => ['applications', id] as const;

const at = (id: string, tag: string | undefined) => ({
  path: { applicationId: id },
  header: tag === undefined ? {} : { 'If-Match': tag },
});

export const readApplication = (id: string, signal?: AbortSignal) =>
  answerAndTagOf(
    api.GET('/admin/v1/applications/{applicationId}', { params: { path: { applicationId: id } }, signal }),
  );

export const writeApplication = (id: string, body: ApplicationChanges, tag: string | undefined) =>
  answerAndTagOf(api.PATCH('/admin/v1/applications/{applicationId}', { params: at(id, tag), body }));

export const rotateSecret = (id: string, tag: string | undefined) =>
  answerOf(api.POST('/admin/v1/applications/{applicationId}/rotate-secret', { params: at(id, tag) }));

export const removeApplication = (id: string, tag: string | undefined) =>
  answerOf(api.DELETE('/admin/v1/applications/{applicationId}', { params: at(id, tag) }));
