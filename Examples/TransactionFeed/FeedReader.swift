import Larder

/// Reads the pages of a feed one after another, and loads each ahead of time while the one before is being read.
struct FeedReader<Store: DataStore<Transaction>> {
  typealias Page = StorePage<Transaction>

  private let pages: StorePages<Store>
  private var pager: Pager<Page>
  private var loadAhead: Task<Page, any Error>?

  init(pages: StorePages<Store>, start: PageStart) {
    self.pages = pages
    pager = Pager(start: start)
  }

  /// The next page, or `nil` behind the last one.
  ///
  /// - Throws: What the store throws. The next call tries the same page again.
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
  /// Reads the page that begins somewhere.
  func page(from start: PageStart) async throws -> StorePage<Store.Value> {
    switch start {
    case .beginning: try await page()
    case .after(let cursor): try await page(after: cursor)
    }
  }
}
