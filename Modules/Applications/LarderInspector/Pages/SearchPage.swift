#if Inspector
import HTTPTypes
import Larder

/// The page of a search in values.
extension InspectorPages {
  /// The limits of one page of a search: the values that are read, their bytes, and the lines.
  static let searchLimits = (values: 10_000, bytes: 64 << 20, lines: 100)

  /// Finds the entries whose values contain a text.
  ///
  /// A page reads a limited number of values and then offers to continue, so it takes a limited time in a store of any size.
  func search(_ fields: FormFields) async throws -> Page {
    let (number, store) = try store(fields)
    let text = fields["contains"] ?? ""
    guard (1...256).contains(text.utf8.count) else {
      throw PageFailure(.badRequest, "give a text of 1 to 256 bytes to search for")
    }
    let prefix = try fields.key("prefix") ?? ""
    let search = try await ValueSearch(
      text, in: store.contents, range: KeyRange.prefix(prefix), after: fields.key("after"), limits: Self.searchLimits)
    let rows = search.found.map { entry -> HTML in
      let address = Page.address("entry", ["store": "\(number)", "key": entry.key.hexadecimal])
      let value = InspectedValue(entry.value, format: store.contents.format)
      return """
        <tr><th scope="row"><a href="\(address)">\(Readable.key(entry.key))</a></th><td class="number">\(Readable.size(entry.value.count))</td>
        <td class="preview"><span class="kind">\(value.kind)</span> \(value.preview)</td></tr>
        """
    }
    let table: HTML =
      rows.isEmpty
      ? "<p class=\"empty\">No value in this part contains the text.</p>"
      : """
      <div class="table"><table><thead><tr><th scope="col">Key</th><th scope="col" class="number">Size</th><th scope="col">Value</th></tr></thead>
      <tbody>\(rows)</tbody></table></div>
      """
    let unreadable: HTML? =
      search.unreadableCount == 0
      ? nil : "<p class=\"problem\">\(Readable.count(search.unreadableCount)) values cannot be read.</p>"
    let next: HTML? = search.end.map { key in
      let address = Page.address(
        "search",
        [
          "store": "\(number)", "prefix": prefix.isEmpty ? nil : prefix.hexadecimal, "contains": text,
          "after": key.hexadecimal,
        ])
      return """
        <nav class="pages" aria-label="Pages"><a class="button" data-key="n" href="\(address)">Continue after \(Readable.key(key))</a></nav>
        """
    }
    return Page(
      title: "Search", crumbs: crumbs(number, store),
      content: """
        <h1>Values that contain “\(text)”</h1>
        \(searchForm(number, prefix: prefix, text: text))
        <p role="status">\(Readable.count(search.readCount)) values read, \(Readable.count(search.found.count)) found\(search.end == nil ? "" : ", and more to read").</p>
        \(unreadable)\(table)\(next)
        """)
  }

  /// The form of a search in values below a prefix.
  func searchForm(_ number: Int, prefix: StoreKey, text: String = "") -> HTML {
    let field: HTML? = prefix.isEmpty ? nil : "<input type=\"hidden\" name=\"prefix\" value=\"\(prefix.hexadecimal)\">"
    return """
      <form class="search" action="search" method="get"><input type="hidden" name="store" value="\(number)">\(field)
      <label>Text in values \(prefix.isEmpty ? "" : "below \(Readable.key(prefix)) ")<input name="contains" required maxlength="256" autocomplete="off" spellcheck="false" value="\(text)"></label>
      <button>Search values</button></form>
      """
  }
}

/// A part of a search in the values of a store.
struct ValueSearch: Sendable {
  /// The entries that were found.
  private(set) var found: [StoreEntry<[UInt8]>] = []
  /// The number of values that were read.
  private(set) var readCount = 0
  /// The number of values that cannot be read.
  private(set) var unreadableCount = 0
  /// The last key that was examined, or `nil` if the search is at its end.
  private(set) var end: StoreKey?

  /// Searches until a limit is reached.
  ///
  /// - Parameters:
  ///   - text: The text, which is compared byte by byte with the values as the codec of the pages writes them.
  ///   - contents: The store.
  ///   - range: The keys.
  ///   - start: The last key of the part before, or `nil` for the first part.
  ///   - limits: The limits.
  init(
    _ text: String, in contents: any InspectedContents, range: KeyRange, after start: StoreKey?,
    limits: (values: Int, bytes: Int, lines: Int)
  ) async throws {
    let text = Array(text.utf8)
    var (rest, bytes) = (start.map { range.after($0) } ?? range, 0)
    let batch = 256
    while true {
      let keys = try await contents.keys(in: rest, limit: batch, order: .ascending)
      for key in keys {
        readCount += 1
        do {
          if let value = try await contents.value(forKey: key) {
            bytes += value.count
            if value.contains(text) { found.append(StoreEntry(key: key, value: value)) }
          }
        } catch let error as StoreError where error.isValueUnreadable {
          unreadableCount += 1
        }
        if readCount >= limits.values || bytes >= limits.bytes || found.count >= limits.lines {
          let isLast = try await contents.keys(in: range.after(key), limit: 1, order: .ascending).isEmpty
          end = isLast ? nil : key
          return
        }
      }
      guard keys.count == batch, let last = keys.last else { return }
      rest = range.after(last)
    }
  }
}
#endif
