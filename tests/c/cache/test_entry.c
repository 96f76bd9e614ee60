/* test_entry.c — whatever is done to an entry's bytes, opening it gives the entry or a clean CACHE error. */
#include "support.h"

#include "base/wire.h"
#include "cache/entry.h"

static jtn_buf encode(void)
{
    jtn_digest k2 = digest_of("k2");
    jtn_buf bytes;

    jtn__buf_init(&bytes, 0);
    assert_int_equal(jtn__entry_encode(jtn__view("file"), jtn__view("payload"), jtn__view("story"), &k2, &bytes), JTN_OK);
    return bytes;
}

/* Decodes a copy of exactly that size, so that a sanitizer sees a read past its end. */
static jtn_status decode(const char *data, size_t size)
{
    char *copy = jtn__alloc(size);
    jtn_entry entry = {0};
    jtn_status status;

    memcpy(copy, data, size);
    status = jtn__entry_decode((jtn_view){copy, size}, "it", &entry);
    jtn__free(copy);
    return status;
}

static void an_entry_comes_back_as_it_was_put(void **state)
{
    jtn_buf bytes = encode();
    jtn_digest k2 = digest_of("k2");
    jtn_entry entry = {0};

    assert_int_equal(jtn__entry_decode((jtn_view){bytes.data, bytes.size}, "it", &entry), JTN_OK);
    assert_true(jtn__view_equal(entry.payload, jtn__view("payload")));
    assert_true(jtn__view_equal(entry.material, jtn__view("story")));
    assert_memory_equal(entry.k2.bytes, k2.bytes, sizeof k2.bytes);
    assert_int_equal((entry.payload.data - bytes.data) % 64, 0);
    jtn__buf_deinit(&bytes);
}

static void every_flipped_bit_is_an_error(void **state)
{
    jtn_buf bytes = encode();

    for (size_t i = 0; i < bytes.size; i++)
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[i] ^= (char)(1 << bit);
            if (decode(bytes.data, bytes.size) != JTN_ERROR_CACHE)
                fail_msg("byte %zu, bit %d: %d", i, bit, decode(bytes.data, bytes.size));
            bytes.data[i] ^= (char)(1 << bit);
        }
    assert_int_equal(decode(bytes.data, bytes.size), JTN_OK);
    jtn__buf_deinit(&bytes);
}

static void every_shorter_length_is_an_error(void **state)
{
    jtn_buf bytes = encode();

    for (size_t size = 0; size < bytes.size; size++) {
        if (decode(bytes.data, size) != JTN_ERROR_CACHE)
            fail_msg("cut to %zu of %zu bytes", size, bytes.size);
        if (decode(bytes.data + size + 1, bytes.size - size - 1) != JTN_ERROR_CACHE)
            fail_msg("without its first %zu bytes", size + 1);
    }
    jtn__buf_deinit(&bytes);
}

static void seal(jtn_buf *bytes)
{
    jtn_checksum checksum;

    jtn__checksum_of(bytes->data, bytes->size - sizeof checksum, &checksum);
    memcpy(bytes->data + bytes->size - sizeof checksum, checksum.bytes, sizeof checksum.bytes);
}

/* Footer: magic 8, version 4, zero 4, three sizes of 8, k2 32, checksum 16. */
#define FROM_END(offset) (88 - (offset))

static void hostile_sizes_with_a_right_checksum_are_errors(void **state)
{
    static const uint64_t hostile[] = {UINT64_MAX, UINT64_MAX - 63, 1ull << 63, 1ull << 32, 1000, 65};

    for (size_t field = 0; field < 3; field++)
        for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
            jtn_buf bytes = encode();

            for (size_t k = 0; k < 8; k++)
                bytes.data[bytes.size - FROM_END(16 + 8 * field) + k] = (char)(hostile[i] >> (8 * k));
            seal(&bytes);
            assert_int_equal(decode(bytes.data, bytes.size), JTN_ERROR_CACHE);
            jtn__buf_deinit(&bytes);
        }
}

static void another_format_says_so_and_what_to_do(void **state)
{
    jtn_buf bytes = encode();

    bytes.data[bytes.size - FROM_END(8)] = 2;
    seal(&bytes);
    assert_int_equal(decode(bytes.data, bytes.size), JTN_ERROR_CACHE);
    assert_non_null(strstr(jtn__error_message(), "format 2"));
    assert_non_null(strstr(jtn__error_message(), "build the module again"));
    jtn__buf_deinit(&bytes);
}

static void an_empty_file_is_an_error(void **state)
{
    jtn_entry entry = {0};

    write_file(in_folder("empty.so"), "");
    assert_int_equal(jtn__entry_open(in_folder("empty.so"), &entry), JTN_ERROR_CACHE);
    assert_null(entry.path);
}

static void an_absent_file_is_not_found(void **state)
{
    jtn_entry entry = {0};

    assert_int_equal(jtn__entry_open(in_folder("none.so"), &entry), JTN_ERROR_NOT_FOUND);
}

static void a_pipe_or_a_folder_in_its_place_is_an_error_and_no_wait(void **state)
{
    jtn_entry entry = {0};

    assert_int_equal(mkfifo(in_folder("pipe.so"), 0600), 0);
    assert_int_equal(jtn__entry_open(in_folder("pipe.so"), &entry), JTN_ERROR_IO);
    assert_int_equal(jtn__entry_open(folder, &entry), JTN_ERROR_IO);
}

static void a_file_copied_elsewhere_opens(void **state)
{
    jtn_buf bytes = encode();
    jtn_entry entry = {0};

    assert_int_equal(jtn__file_write(in_folder("copied.so"), bytes.data, bytes.size, 0600), JTN_OK);
    assert_int_equal(jtn__entry_open(in_folder("copied.so"), &entry), JTN_OK);
    assert_true(jtn__view_equal(entry.payload, jtn__view("payload")));
    assert_string_equal(entry.path, in_folder("copied.so"));
    jtn__entry_deinit(&entry);
    jtn__buf_deinit(&bytes);
}

static void the_golden_entry_of_format_1_still_opens(void **state)
{
    jtn_entry entry = {0};

    assert_int_equal(jtn__entry_open(JTN_SOURCE_DIR "/tests/golden/entry-1.so", &entry), JTN_OK);
    assert_true(jtn__view_equal(entry.payload, jtn__view("payload")));
    assert_true(jtn__view_equal(entry.material, jtn__view("story")));
    jtn__entry_deinit(&entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_entry_comes_back_as_it_was_put),
        CASE(every_flipped_bit_is_an_error),
        CASE(every_shorter_length_is_an_error),
        CASE(hostile_sizes_with_a_right_checksum_are_errors),
        CASE(another_format_says_so_and_what_to_do),
        CASE(an_empty_file_is_an_error),
        CASE(an_absent_file_is_not_found),
        CASE(a_pipe_or_a_folder_in_its_place_is_an_error_and_no_wait),
        CASE(a_file_copied_elsewhere_opens),
        CASE(the_golden_entry_of_format_1_still_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
