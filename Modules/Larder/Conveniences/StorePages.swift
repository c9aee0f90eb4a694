import Foundation

/// The pages of the entries of a range, which ``DataStore/pages(of:size:order:)`` returns.
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
/// A page is found by its key, not by counting, so the thousandth page costs as much as the first. An entry that exists
/// throughout an iteration over the pages appears on exactly one of them, even if other entries are added or removed.
public struct StorePages<Value: Sendable>: AsyncSequence, Sendable {
  /// A page.
  public typealias Element = StorePage<Value>

  let store: any DataStore<Value>
  let range: KeyRange
  let size: Int
  let order: ScanOrder
  var start: PageCursor?

  /// The total number of pages of the range at present, independent of a starting cursor, or 0 if the range has no
  /// entry.
  ///
  /// The property counts the entries of the range. This in most stores costs more than reading a page.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if the page size is less than 1; as ``DataStore/count(in:)``.
  public var pageCount: Int {
    get async throws {
      try checkSize()
      let (full, rest) = try await store.count(in: range).quotientAndRemainder(dividingBy: size)
      return rest == 0 ? full : full + 1
    }
  }

  /// Returns the first page.
  ///
  /// - Throws: As ``page(after:)``.
  public func page() async throws -> StorePage<Value> {
    try checkSize()
    if let start, start.order != order {
      throw StoreError(
        .invalidArgument, during: .page, store: store.information.name,
        message: "the cursor is from pages in the opposite order")
    }
    if let index = start?.index {
      throw StoreError(
        .invalidArgument, during: .page, store: store.information.name,
        message: "the cursor is from pages by the index \(index); pass it to the query that returned it")
    }
    let range = start.map { self.range.part(beyond: $0.key, in: order) } ?? self.range
    let entries = try await store.entries(in: range, limit: size, order: order)
    guard entries.count >= size, let last = entries.last?.key else { return StorePage(entries: entries, next: nil) }
    // Only the key of the next entry is read, so that a value that cannot be decoded does not fail the page before it.
    let rest = try range.rest(behind: last, in: order, of: store.information.name, during: .page)
    let following = try await store.keys(in: rest, limit: 1, order: order)
    return StorePage(entries: entries, next: following.isEmpty ? nil : PageCursor(after: last, order: order))
  }

  /// Returns the page that follows another.
  ///
  /// ```swift
  /// let pages = store.pages(of: .prefix("user:"), size: 20)
  /// let page = try await pages.page(after: PageCursor(cursorOfRequest))
  /// ```
  ///
  /// - Parameter cursor: The ``StorePage/next`` cursor of the preceding page, from these pages or earlier ones.
  /// - Throws: ``StoreError`` with `invalidArgument` if the page size is less than 1, or if the cursor has the opposite
  ///   order or is from pages by an index; as ``DataStore/entries(in:limit:order:)``.
  public func page(after cursor: PageCursor) async throws -> StorePage<Value> {
    try await starting(after: cursor).page()
  }

  /// Returns the same pages, but starting after a cursor.
  ///
  /// - Parameter cursor: The cursor that the first page follows, or `nil` for the beginning of the range.
  public func starting(after cursor: PageCursor?) -> StorePages {
    var pages = self
    pages.start = cursor
    return pages
  }

  /// Returns an iterator over the pages.
  ///
  /// A range without entries has no page.
  public func makeAsyncIterator() -> Iterator {
    Iterator(remaining: self)
  }

  private func checkSize() throws {
    guard size < 1 else { return }
    throw StoreError(
      .invalidArgument, during: .page, store: store.information.name,
      message: "the page size must be at least 1, not \(size)")
  }

  /// An iterator over the pages.
  public struct Iterator: AsyncIteratorProtocol {
    /// The pages that are not read yet, or `nil` at the end and after an error.
    var remaining: StorePages?

    /// Returns the next page, or `nil` at the end and after an error.
    ///
    /// - Parameter actor: The actor of the caller. A `for try await` loop passes it automatically.
    /// - Throws: As ``StorePages/page(after:)``; `CancellationError` if the task was cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws -> StorePage<Value>? {
      guard let pages = remaining.take() else { return nil }
      try Task.checkCancellation()
      let page = try await pages.page()
      remaining = page.next.map { pages.starting(after: $0) }
      return page.entries.isEmpty ? nil : page
    }
  }
}

/// A page of the entries of a store, as they were at one moment.
public struct StorePage<Value: Sendable>: Sendable {
  /// The entries, in the order of the pages.
  public let entries: [StoreEntry<Value>]

  /// The cursor of the next page, or `nil` if this was the last page when it was read.
  public let next: PageCursor?

  /// Creates a page.
  ///
  /// - Parameters:
  ///   - entries: The entries, in the order of the pages.
  ///   - next: The cursor of the next page, or `nil` if this is the last one.
  public init(entries: [StoreEntry<Value>], next: PageCursor?) {
    self.entries = entries
    self.next = next
  }
}

extension StorePage: Equatable where Value: Equatable {}

/// A position between two pages of a range, at which reading continues.
///
/// A cursor contains the last key that was read and the order, but no internal state of the store. It therefore stays
/// valid when entries are added or removed, and when the store is closed and opened again. You can also send it to a
/// client as ``text`` and receive it back. The text is not secret, because it reveals the key to anyone who decodes it.
/// A modified text can lead to another position in the range, but never out of the range. A cursor of pages by an index is
/// accepted only by a query with that index, in whose range its key is.
///
/// ```swift
/// func listUsers(after cursor: String?) async throws -> (users: [User], next: String?) {
///   let pages = users.pages(of: .prefix("user:"), size: 20)
///   let start = try cursor.map { try PageCursor($0) }
///   let page = try await pages.starting(after: start).page()
///   return (page.entries.map(\.value), page.next?.text)
/// }
/// ```
public struct PageCursor: Sendable, Hashable {
  /// The key of the last entry that was read, or its index key in pages by an index.
  public let key: StoreKey

  /// The order of the pages.
  public let order: ScanOrder

  /// The name of the index by which the pages are ordered, or `nil` if they are ordered by key.
  public let index: String?

  /// Creates a cursor that continues after a key.
  ///
  /// - Parameters:
  ///   - key: The key. It need not exist.
  ///   - order: The order of the pages. Defaults to ascending keys.
  ///   - index: The name of the index that the key belongs to, or `nil` if it is the key of an entry. Defaults to `nil`.
  public init(after key: StoreKey, order: ScanOrder = .ascending, index: String? = nil) {
    self.key = key
    self.order = order
    self.index = index
  }

  /// Creates a cursor from its ``text``.
  ///
  /// ```swift
  /// let cursor = try PageCursor(cursorOfRequest)  // throws if the text is not that of a cursor
  /// ```
  ///
  /// - Parameter text: The ``text`` of a cursor, from this process or an earlier one.
  /// - Throws: ``StoreError`` with `invalidArgument` if the text is not the text of a cursor.
  public init(_ text: String) throws {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    let order: ScanOrder? =
      switch parts.first?.dropFirst() {
      case "a": .ascending
      case "d": .descending
      default: nil
      }
    guard let order, parts.count == (text.hasPrefix("1") ? 2 : 3), let bytes = PageCursor.bytes(ofBase64: parts.last),
      case let key = StoreKey(bytes: bytes), !key.isEmpty, key.count <= StoreKey.maximumLength
    else {
      throw PageCursor.notACursor
    }
    let index = parts.count == 3 ? PageCursor.bytes(ofBase64: parts[1]) : nil
    self.init(after: key, order: order, index: index.map { String(decoding: $0, as: UTF8.self) })
    // Base64 has several texts for the same bytes, but a cursor has only one.
    guard self.text.utf8.elementsEqual(text.utf8) else { throw PageCursor.notACursor }
  }

  /// The cursor as text that is safe in a URL, because it consists of letters, digits, "-", "_" and ".".
  ///
  /// The format, version 1, is `1a.` for ascending or `1d.` for descending, followed by the key in base64url without
  /// padding (RFC 4648, section 5). In pages by an index, it is version 2: `2a.` or `2d.`, the name of the index in
  /// base64url, a period, and the index key in base64url.
  public var text: String {
    let mark = order == .ascending ? "a" : "d"
    let key = PageCursor.base64(of: key.bytes)
    return index.map { "2\(mark).\(PageCursor.base64(of: [UInt8]($0.utf8))).\(key)" } ?? "1\(mark).\(key)"
  }

  private static func base64(of bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  private static func bytes(ofBase64 text: Substring?) -> Data? {
    guard let text else { return nil }
    let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    return Data(base64Encoded: text.replacing("-", with: "+").replacing("_", with: "/") + padding)
  }

  private static var notACursor: StoreError {
    StoreError(
      .invalidArgument, during: .page,
      message: "invalid page cursor: expected the text of a cursor from an earlier page")
  }
}

extension PageCursor: CustomStringConvertible {
  /// The cursor as text.
  public var description: String { text }
}

extension PageCursor: Codable {
  /// Decodes a cursor from its text.
  public init(from decoder: any Decoder) throws {
    try self.init(decoder.singleValueContainer().decode(String.self))
  }

  /// Encodes the cursor as its text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}
