import { Global, Module } from '@nestjs/common';
import { Catalogue } from './catalogue.service.js';

@Global()
@Module({ providers: [Catalogue], exports: [Catalogue] })
export class CatalogueModule {}
