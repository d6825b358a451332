/* A list of books in a database: tables, prepared statements, a function of the program's own, an error. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static int row(void *context, int count, char **values, char **names) {
    int *rows = context;
    ++*rows;
    for (int i = 0; i < count; i++)
        printf("%s%s=%s", i ? ", " : "", names[i], values[i] ? values[i] : "NULL");
    printf("\n");
    return 0;
}

/* The age of a book in 2026. */
static void age(sqlite3_context *context, int count, sqlite3_value **values) {
    if (count == 1 && sqlite3_value_type(values[0]) == SQLITE_INTEGER)
        sqlite3_result_int(context, 2026 - sqlite3_value_int(values[0]));
    else
        sqlite3_result_null(context);
}

static int fail(sqlite3 *db, const char *what) {
    fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(db));
    sqlite3_close(db);
    return 1;
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : ":memory:";
    static const struct { const char *title, *author; int year; } books[] = {
        { "Die Verwandlung", "Franz Kafka", 1915 },
        { "The Art of Computer Programming", "Donald Knuth", 1968 },
        { "Kein Ort. Nirgends", NULL, 1979 },
    };
    sqlite3 *db;
    sqlite3_stmt *insert, *query;
    char *message = NULL;
    int rows = 0;

    if (sqlite3_open(path, &db) != SQLITE_OK)
        return fail(db, path);
    if (sqlite3_exec(db, "create table book (title text, author text, year int)", NULL, NULL, &message) != SQLITE_OK) {
        fprintf(stderr, "%s\n", message);
        sqlite3_free(message);
        return 1;
    }
    if (sqlite3_create_function(db, "age", 1, SQLITE_UTF8, NULL, age, NULL, NULL) != SQLITE_OK)
        return fail(db, "age");

    if (sqlite3_prepare_v2(db, "insert into book values (?, ?, ?)", -1, &insert, NULL) != SQLITE_OK)
        return fail(db, "insert");
    for (size_t i = 0; i < sizeof books / sizeof *books; i++) {
        sqlite3_bind_text(insert, 1, books[i].title, -1, SQLITE_STATIC);
        sqlite3_bind_text(insert, 2, books[i].author, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int(insert, 3, books[i].year);
        if (sqlite3_step(insert) != SQLITE_DONE)
            return fail(db, "insert");
        sqlite3_reset(insert);
    }
    sqlite3_finalize(insert);

    const char *sql = "select title, author, age(year), x'00ff10' from book order by year; select 1", *tail;
    if (sqlite3_prepare_v2(db, sql, -1, &query, &tail) != SQLITE_OK)
        return fail(db, "select");
    while (sqlite3_step(query) == SQLITE_ROW) {
        const unsigned char *title = sqlite3_column_text(query, 0), *author = sqlite3_column_text(query, 1);
        const unsigned char *blob = sqlite3_column_blob(query, 3);
        printf("%s by %s, %d years old, %d bytes, the second %d\n", title, author ? (const char *)author : "nobody",
               sqlite3_column_int(query, 2), sqlite3_column_bytes(query, 3), blob[1]);
    }
    sqlite3_finalize(query);
    printf("behind it:%s\n", tail);

    sqlite3_exec(db, "select count(*) as books, min(year) as first from book", row, &rows, NULL);
    printf("%d row\n", rows);
    if (sqlite3_exec(db, "select * from magazine", row, &rows, &message) != SQLITE_OK) {
        printf("error: %s\n", message);
        sqlite3_free(message);
    }
    printf("%s\n", sqlite3_close(db) == SQLITE_OK ? "closed" : "busy");
    return 0;
}
