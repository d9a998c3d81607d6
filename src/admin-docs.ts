import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { z } from 'zod';
import {
  applicationChangesInput,
  applicationListOutput,
  applicationOutput,
  applicationWithSecretOutput,
  newApplicationInput,
} from './auth/applications-io.js';
import { AuthModule } from './auth/auth.module.js';
import { channelChangesInput, channelListOutput, channelOutput } from './channels/channels-io.js';
import { ChannelsModule } from './channels/channels.module.js';
import { DeliveryModule } from './delivery/delivery.module.js';
import { deliveryOutput, deliveryPageOutput, deliveryWithAttemptsOutput } from './delivery/delivery-output.js';
import { healthOutput } from './health/health.controller.js';
import { HealthModule } from './health/health.module.js';
import { openApiSchema } from './infra/http/admin-operation.js';
import { generalPolicyInput, policyOverrideInput } from './retry-policy/policy-input.js';
import { generalPolicyOutput, previewOutput, subscriptionPolicyOutput } from './retry-policy/policy-output.js';
import { RetryPolicyModule } from './retry-policy/retry-policy.module.js';
import {
  subscriptionChangesInput,
  subscriptionListOutput,
  subscriptionOutput,
} from './subscriptions/subscriptions-io.js';
import { SubscriptionsModule } from './subscriptions/subscriptions.module.js';

const problem = z.object({
  type: z.url().describe('Address of a page that explains this class of problem.'),
  code: z.string().describe('Stable; docs/errors.md lists them.'),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  instance: z.string().describe('`urn:uuid:…`; the log has the same.'),
  invalidParams: z
    .array(z.object({ name: z.string(), code: z.string(), reason: z.string() }))
    .optional()
    .describe('With code `invalid`: each field that is wrong.'),
});

const inputs = {
  ApplicationChanges: applicationChangesInput,
  ChannelChanges: channelChangesInput,
  NewApplication: newApplicationInput,
  RetryPolicyInput: generalPolicyInput,
  RetryPolicyOverride: policyOverrideInput,
  SubscriptionChanges: subscriptionChangesInput,
};

const outputs = {
  Application: applicationOutput,
  ApplicationList: applicationListOutput,
  ApplicationWithSecret: applicationWithSecretOutput,
  Channel: channelOutput,
  ChannelList: channelListOutput,
  Delivery: deliveryOutput,
  DeliveryPage: deliveryPageOutput,
  DeliveryWithAttempts: deliveryWithAttemptsOutput,
  Health: healthOutput,
  Problem: problem,
  RetryPolicy: generalPolicyOutput,
  RetryPolicyPreview: previewOutput,
  Subscription: subscriptionOutput,
  SubscriptionList: subscriptionListOutput,
  SubscriptionRetryPolicy: subscriptionPolicyOutput,
};

const description = `
Operating Heraut: credentials, channels, subscriptions, deliveries, retry policy, health, metrics. Every call but those of
health and metrics needs a bearer token (HS256)
of a superuser; every error is \`application/problem+json\`.

What publishers and subscribers call is the Notificaties API, described by [its own document](/api/v1/schema/).
`;

/** Served beside the controllers (src/infra/http/metrics.ts). */
const metrics: OpenAPIObject['paths'][string] = {
  get: {
    operationId: 'metrics',
    summary: 'What this process has counted since it started, in the text format of Prometheus.',
    tags: ['health'],
    responses: {
      200: { description: 'The counters.', content: { 'text/plain': { schema: { type: 'string' } } } },
    },
  },
};

/** The OpenAPI document of the admin API: the schemas are those that check the calls. */
export function describeAdminApi(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setTitle('Heraut admin API')
    .setDescription(description)
    .setVersion('1')
    .addBearerAuth()
    .build();
  const document = SwaggerModule.createDocument(app, config, {
    include: [AuthModule, ChannelsModule, DeliveryModule, HealthModule, RetryPolicyModule, SubscriptionsModule],
  });
  document.paths['/metrics'] = metrics;
  document.components = {
    ...document.components,
    schemas: {
      ...Object.fromEntries(Object.entries(inputs).map(([name, schema]) => [name, openApiSchema(schema, 'input')])),
      ...Object.fromEntries(Object.entries(outputs).map(([name, schema]) => [name, openApiSchema(schema, 'output')])),
    },
  };
  return document;
}

/** Serves the document at /docs, to read and to try out, and as /docs/openapi.json and .yaml. Nothing comes from elsewhere. */
export function setupAdminDocs(app: INestApplication): void {
  SwaggerModule.setup('docs', app, () => describeAdminApi(app), {
    jsonDocumentUrl: 'docs/openapi.json',
    yamlDocumentUrl: 'docs/openapi.yaml',
    customSiteTitle: 'Heraut admin API',
    // Its badge would send the document to a server elsewhere.
    swaggerOptions: { validatorUrl: 'none' },
  });
}
