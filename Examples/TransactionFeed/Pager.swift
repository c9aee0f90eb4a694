import Larder

/// Decides which page a reader loads and when: the requested page, and then the next one ahead.
///
/// A plain value that loads nothing itself. It returns the page to load, receives the result, and returns the pages in
/// order. One load runs at a time, at most one page is kept, and a failed load is requested again.
struct Pager<Page> {
  private enum State {
    /// The page with this start must be loaded.
    case due(PageStart)
    /// It is being loaded.
    case loading(PageStart)
    /// It is loaded and was not taken yet.
    case loaded(Page, next: PageCursor?)
    /// There is no further page.
    case atEnd
  }

  private var state: State

  /// Creates a pager before a page.
  ///
  /// - Parameter start: The start of that page. Defaults to the beginning of the feed.
  init(start: PageStart = .beginning) {
    state = .due(start)
  }

  /// A Boolean value that indicates whether there is no further page.
  var isAtEnd: Bool {
    if case .atEnd = state { true } else { false }
  }

  /// Returns the start of the page to load now, or `nil` if the next page is loaded or being loaded.
  ///
  /// The caller must load that page and report the result with ``finishLoad(_:next:)`` or ``failLoad()``.
  mutating func beginLoad() -> PageStart? {
    guard case .due(let start) = state else { return nil }
    state = .loading(start)
    return start
  }

  /// Accepts a loaded page.
  ///
  /// - Parameters:
  ///   - page: The page.
  ///   - next: The start of the next page, or `nil` if there isn't one.
  mutating func finishLoad(_ page: Page, next: PageCursor?) {
    guard case .loading = state else { return }
    state = .loaded(page, next: next)
  }

  /// Records that a load failed, so the same page must be loaded again.
  mutating func failLoad() {
    guard case .loading(let start) = state else { return }
    state = .due(start)
  }

  /// Returns the loaded page, after which the next one must be loaded.
  mutating func takePage() -> Page? {
    guard case .loaded(let page, let next) = state else { return nil }
    state = next.map { .due(.after($0)) } ?? .atEnd
    return page
  }
}
