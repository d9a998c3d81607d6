import { Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { SubscriptionsModule } from '../subscriptions/subscriptions.module.js';
import { RetryPolicies } from './retry-policies.service.js';
import { RetryPolicyController } from './retry-policy.controller.js';

@Module({
  imports: [AuthModule, SubscriptionsModule],
  controllers: [RetryPolicyController],
  providers: [RetryPolicies],
  exports: [RetryPolicies],
})
export class RetryPolicyModule {}
