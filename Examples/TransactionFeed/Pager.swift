import Larder

/// Decides what a reader of pages loads and when: the page that is asked for, and the one behind it ahead of time.
///
/// A plain value that loads nothing itself: it says what to load, is told what came of it, and hands out the pages in
/// order. One load runs at a time, at most one page is kept, and a load that failed is asked for again.
struct Pager<Page> {
  private enum State {
    /// The page that begins here is to be loaded.
    case due(PageStart)
    /// It is being loaded.
    case loading(PageStart)
    /// It is here, and nobody has taken it yet.
    case loaded(Page, next: PageCursor?)
    /// There is no further page.
    case atEnd
  }

  private var state: State

  /// Makes a pager that stands before a page.
  ///
  /// - Parameter start: Where that page begins; the beginning of the feed unless given.
  init(start: PageStart = .beginning) {
    state = .due(start)
  }

  /// Whether there is no further page.
  var isAtEnd: Bool {
    if case .atEnd = state { true } else { false }
  }

  /// What to load now: the page that comes next, where it is neither here nor on its way.
  ///
  /// Whoever gets a start loads that page, and tells by ``finishLoad(_:next:)`` or ``failLoad()`` what came of it.
  mutating func beginLoad() -> PageStart? {
    guard case .due(let start) = state else { return nil }
    state = .loading(start)
    return start
  }

  /// Takes a page that was loaded.
  ///
  /// - Parameters:
  ///   - page: The page.
  ///   - next: Where the next one begins, or `nil` where there is none.
  mutating func finishLoad(_ page: Page, next: PageCursor?) {
    guard case .loading = state else { return }
    state = .loaded(page, next: next)
  }

  /// Notes that a load failed: the same page is due again.
  mutating func failLoad() {
    guard case .loading(let start) = state else { return }
    state = .due(start)
  }

  /// Hands out the page that is here, which makes the one behind it due.
  mutating func takePage() -> Page? {
    guard case .loaded(let page, let next) = state else { return nil }
    state = next.map { .due(.after($0)) } ?? .atEnd
    return page
  }
}
