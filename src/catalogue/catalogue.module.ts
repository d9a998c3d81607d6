import { Global, Module } from '@nestjs/common';
import { Catalogue } from './catalogue.service.js';
import { KeptLists } from './kept-lists.service.js';

@Global()
@Module({ providers: [Catalogue, KeptLists], exports: [Catalogue, KeptLists] })
export class CatalogueModule {}
