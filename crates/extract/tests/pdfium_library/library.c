/* A library with the functions of PDFium that are called, which ends the program when they are called wrongly: in another
 * order than allowed, with something that is closed, or from two threads. A file is `P` and a letter for each page; the text
 * of a page is that letter as often as its place in the alphabet, with an astral character at its end. */
#include <stddef.h>
#include <stdlib.h>

typedef struct {
    const unsigned char *bytes;
    size_t length;
    int pages;
} Document;

typedef struct {
    Document *document;
    int letter;
    int texts;
} Page;

typedef struct {
    Page *page;
} Text;

static int ready, inside;

static void check(int is_right) {
    if (!is_right)
        abort();
}

/* From the opening of a document to its closing, it is one thread's turn. */
static void enter(void) {
    check(ready && __sync_add_and_fetch(&inside, 1) == 1);
}

static void leave(void) {
    __sync_sub_and_fetch(&inside, 1);
}

void FPDF_InitLibrary(void) {
    ready = 1;
}

void *FPDF_LoadMemDocument64(const void *bytes, size_t length, const char *password) {
    Document *document;
    enter();
    check(password == NULL);
    if (length == 0 || *(const unsigned char *)bytes != 'P') {
        leave();
        return NULL;
    }
    document = malloc(sizeof *document);
    *document = (Document){bytes, length, 0};
    return document;
}

unsigned long FPDF_GetLastError(void) {
    return 4;
}

int FPDF_GetPageCount(Document *document) {
    return (int)document->length - 1;
}

/* A page of `-` cannot be opened. */
void *FPDF_LoadPage(Document *document, int number) {
    Page *page;
    check(number >= 0 && (size_t)number + 1 < document->length);
    if (document->bytes[number + 1] == '-')
        return NULL;
    page = malloc(sizeof *page);
    *page = (Page){document, document->bytes[number + 1], 0};
    document->pages++;
    return page;
}

void *FPDFText_LoadPage(Page *page) {
    Text *text = malloc(sizeof *text);
    text->page = page;
    page->texts++;
    return text;
}

/* The astral character counts as one and takes two units. */
int FPDFText_CountChars(Text *text) {
    return text->page->letter - 'a' + 2;
}

int FPDFText_GetText(Text *text, int start, int count, unsigned short *result) {
    int written = 0;
    check(start == 0 && count == FPDFText_CountChars(text));
    while (written < count - 1)
        result[written++] = (unsigned short)text->page->letter;
    result[written++] = 0xD83D;
    result[written++] = 0xDE00;
    result[written++] = 0;
    return written;
}

void FPDFText_ClosePage(Text *text) {
    text->page->texts--;
    free(text);
}

void FPDF_ClosePage(Page *page) {
    check(page->texts == 0);
    page->document->pages--;
    free(page);
}

void FPDF_CloseDocument(Document *document) {
    check(document->pages == 0);
    free(document);
    leave();
}
