import type { components } from '../../../generated/admin-api.d.ts';
import { answerAndTagOf, answerOf, api } from '../../api/client.ts';

export type Application = components['schemas']['Application'];

export const applicationsKey = ['applications'] as const;
export const applicationKey = (id: string) => ['applications', id] as const;

const at = (id: string, tag: string | undefined) => ({
  path: { applicationId: id },
  header: tag === undefined ? {} : { 'If-Match': tag },
});

export const readApplications = async (signal?: AbortSignal): Promise<Application[]> =>
  (await answerOf(api.GET('/admin/v1/applications', { signal }))).applications;

export const readApplication = (id: string, signal?: AbortSignal) =>
  answerAndTagOf(
    api.GET('/admin/v1/applications/{applicationId}', { params: { path: { applicationId: id } }, signal }),
  );

export const writeApplication = (
  { id, label, scopes, isSuperuser, alertEmail }: Application,
  tag: string | undefined,
) =>
  answerAndTagOf(
    api.PATCH('/admin/v1/applications/{applicationId}', {
      params: at(id, tag),
      body: { label, scopes, isSuperuser, alertEmail },
    }),
  );

export const rotateSecret = (id: string, tag: string | undefined) =>
  answerOf(api.POST('/admin/v1/applications/{applicationId}/rotate-secret', { params: at(id, tag) }));

export const removeApplication = (id: string, tag: string | undefined) =>
  answerOf(api.DELETE('/admin/v1/applications/{applicationId}', { params: at(id, tag) }));
