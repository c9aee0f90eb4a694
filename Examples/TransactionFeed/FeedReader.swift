import Larder

/// Reads the pages of a feed one after another, and loads the next page while the current one is being read.
struct FeedReader {
  typealias Page = StorePage<Transaction>

  private let pages: StorePages<Transaction>
  private var pager: Pager<Page>
  private var loadAhead: Task<Page, any Error>?

  init(pages: StorePages<Transaction>, start: PageStart) {
    self.pages = pages
    pager = Pager(start: start)
  }

  /// Returns the next page, or `nil` after the last one.
  ///
  /// - Throws: The error of the store. The next call tries the same page again.
  mutating func next() async throws -> Page? {
    do {
      if let loadAhead {
        self.loadAhead = nil
        let page = try await loadAhead.value
        pager.finishLoad(page, next: page.next)
      } else if let start = pager.beginLoad() {
        let page = try await pages.page(from: start)
        pager.finishLoad(page, next: page.next)
      }
    } catch {
      pager.failLoad()
      throw error
    }
    guard let page = pager.takePage() else { return nil }
    loadAhead = pager.beginLoad().map { start in
      Task { [pages] in try await pages.page(from: start) }
    }
    return page
  }
}

extension StorePages {
  /// Reads the page with the given start.
  func page(from start: PageStart) async throws -> StorePage<Value> {
    switch start {
    case .beginning: try await page()
    case .after(let cursor): try await page(after: cursor)
    }
  }
}
