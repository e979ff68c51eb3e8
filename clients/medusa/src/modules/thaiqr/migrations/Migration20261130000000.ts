import { Migration } from "@medusajs/framework/mikro-orm/migrations";

export class Migration20261130000000 extends Migration {
  override async up(): Promise<void> {
    this.addSql(
      `create table if not exists "thaiqr_cursor" (
        "id" text not null, "sequence" integer not null default 0, "event_id" text null,
        "failures" integer not null default 0,
        "created_at" timestamptz not null default now(), "updated_at" timestamptz not null default now(),
        "deleted_at" timestamptz null, constraint "thaiqr_cursor_pkey" primary key ("id"));`,
    );
  }

  override async down(): Promise<void> {
    this.addSql(`drop table if exists "thaiqr_cursor";`);
  }
}
