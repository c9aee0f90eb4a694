/// The entries of a range of a store, a page at a time; made by ``DataStore/pages(of:size:order:)``.
///
/// ```swift
/// let pages = store.pages(of: .prefix("user:"), size: 50)
/// let first = try await pages.page()
/// if let next = first.next {
///   let second = try await pages.page(after: next)
/// }
/// for try await page in pages { … }
/// ```
///
/// A page is found by key, not by counting, so the thousandth costs what the first does. An entry that is there
/// throughout a walk over the pages appears on exactly one of them, whatever else comes and goes meanwhile.
public struct StorePages<Store: DataStore>: AsyncSequence, Sendable {
  /// A page.
  public typealias Element = StorePage<Store.Value>

  let store: Store
  let range: KeyRange
  let size: Int
  let order: ScanOrder
  var start: PageCursor?

  init(store: Store, range: KeyRange, size: Int, order: ScanOrder) {
    self.store = store
    self.range = range
    self.size = size
    self.order = order
  }

  /// How many pages there are now in all, wherever these pages start; 0 where the range has no entry.
  ///
  /// It counts the entries of the range, which in most stores costs more than reading a page.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the size of a page is below 1; what ``DataStore/count(in:)`` throws.
  public var pageCount: Int {
    get async throws {
      try checkSize()
      let (full, rest) = try await store.count(in: range).quotientAndRemainder(dividingBy: size)
      return rest == 0 ? full : full + 1
    }
  }

  /// Reads the first page.
  ///
  /// - Throws: What ``page(after:)`` throws.
  public func page() async throws -> StorePage<Store.Value> {
    try await page(from: start)
  }

  /// Reads the page behind another.
  ///
  /// - Parameter cursor: The ``StorePage/next`` of the page before, from this walk or an earlier one.
  /// - Throws: ``StoreError``: `invalidArgument` where the size of a page is below 1 or the cursor goes the other way;
  ///   what ``DataStore/entries(in:limit:order:)`` throws.
  public func page(after cursor: PageCursor) async throws -> StorePage<Store.Value> {
    try await page(from: cursor)
  }

  private func page(from cursor: PageCursor?) async throws -> StorePage<Store.Value> {
    try checkSize()
    if let cursor, cursor.order != order {
      throw StoreError(
        .invalidArgument, during: .page, store: store.information.name,
        message: "the cursor comes from pages in the other direction")
    }
    let range = cursor.map { self.range.part(beyond: $0.key, in: order) } ?? self.range
    let entries = try await store.entries(in: range, limit: size, order: order)
    guard entries.count >= size, let last = entries.last?.key else { return StorePage(entries: entries, next: nil) }
    // Only the key of what follows is read: an entry that cannot be decoded must not spoil the page before it.
    let following = try await store.keys(in: range.part(beyond: last, in: order), limit: 1, order: order)
    return StorePage(entries: entries, next: following.isEmpty ? nil : PageCursor(after: last, order: order))
  }

  /// The same pages, but starting behind a cursor.
  ///
  /// - Parameter cursor: Where the first page begins; `nil` for the beginning of the range.
  public func starting(after cursor: PageCursor?) -> StorePages {
    var pages = self
    pages.start = cursor
    return pages
  }

  /// Starts a walk over the pages.
  ///
  /// A range without entries has no page.
  public func makeAsyncIterator() -> Iterator {
    Iterator(pages: self)
  }

  private func checkSize() throws {
    guard size < 1 else { return }
    throw StoreError(
      .invalidArgument, during: .page, store: store.information.name,
      message: "a page of \(size) entries makes no sense")
  }

  /// A walk over the pages.
  public struct Iterator: AsyncIteratorProtocol {
    let pages: StorePages
    var cursor: PageCursor?
    var isFinished = false

    init(pages: StorePages) {
      self.pages = pages
    }

    /// The next page, or `nil` at the end and after an error.
    ///
    /// - Parameter actor: Where the caller runs; the loop `for try await` passes it by itself.
    /// - Throws: What ``StorePages/page(after:)`` throws; `CancellationError` where the task was cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws -> StorePage<Store.Value>? {
      guard !isFinished else { return nil }
      isFinished = true
      try Task.checkCancellation()
      let page = try await pages.starting(after: cursor ?? pages.start).page()
      cursor = page.next
      isFinished = page.next == nil
      return page.entries.isEmpty ? nil : page
    }
  }
}
