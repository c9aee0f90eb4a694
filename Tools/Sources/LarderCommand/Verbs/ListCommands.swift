import ArgumentParser
import Larder
import StoreAccess

/// `larder list`.
struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Print the entries of a store in the order of their keys.",
    discussion: """
      Prints a line {"key":...,"value":...} for each entry within all the given bounds. A key that is not UTF-8 is \
      printed as {"keyBytes":"80c0",...}. If --limit ends the list early, a line on standard error holds the cursor to \
      continue with. The cursor stays valid when entries are added or removed. At a terminal, JSON is indented and colored, unless NO_COLOR \
      is set.

        larder list json:users.json --prefix user: --limit 20
        larder list json:users.json --prefix user: --limit 20 --after 1a.dXNlcjo0Mg
        larder list json:users.json --from 2026-01-01 --to 2026-02-01 --keys
        larder list json:users.json --contains '"role":"admin"'
        larder list json:users.json | jq -c 'select(.value.age > 30)'
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @OptionGroup var range: RangeOptions
  @Option(help: ArgumentHelp("Continue after the end of an earlier list.", valueName: "cursor")) var after: String?
  @Flag(help: "List from the highest key to the lowest.") var reverse = false
  @Option(help: "The maximum number of entries to print.") var limit: Int?
  @Option(
    help: ArgumentHelp(
      "Print only the entries whose values contain this text, as the JSON in a pipe does, byte by byte.",
      valueName: "text"))
  var contains: String?
  @Flag(name: .customLong("keys"), help: "Print the keys without their values.") var printsKeysOnly = false

  func validate() throws {
    guard contains != "" else { throw ValidationError("--contains is empty; give the text to search for") }
    guard limit.map({ $0 >= 0 }) ?? true else { throw ValidationError("--limit must not be negative") }
  }

  func run() async throws {
    let cursor = try after.map { try PageCursor($0) }
    guard cursor == nil || cursor?.order == order else {
      throw ValidationError("the cursor is from a list in the other direction; add or remove --reverse")
    }
    let range = try range.range()
    let next: PageCursor? = try await StoreSession.run(store.target, access: access.storeAccess) { store, output in
      if limit == 0 { return nil }
      return if printsKeysOnly, contains == nil {
        try await printKeys(of: store.present, in: range, after: cursor, to: output)
      } else {
        try await printEntries(of: store.present, in: range, after: cursor, to: output)
      }
    }
    if let next { Diagnostics.writeLine("next: \(next.text)") }
  }

  private var order: ScanOrder { reverse ? .descending : .ascending }

  /// Prints the entries that contain the text, if there is one, up to the limit.
  ///
  /// - Returns: The cursor to continue with, or `nil` if there are no more entries.
  private func printEntries(
    of store: some DataStore<JSONText>, in range: KeyRange, after cursor: PageCursor?, to output: ByteOutput
  ) async throws -> PageCursor? {
    var (cursor, remaining) = (cursor, limit ?? .max)
    let text = contains.map { Array($0.utf8) }
    while remaining > 0 {
      // No page is longer than the limit, so that no value is read in vain.
      let size = text == nil ? min(remaining, 256) : 256
      let page = try await store.pages(of: range, size: size, order: order).starting(after: cursor).page()
      for (number, entry) in page.entries.enumerated() {
        if let text, !entry.value.bytes.contains(text) { continue }
        try output.writeJSON {
          if printsKeysOnly {
            EntryLine.append(key: entry.key, to: &$0)
          } else {
            EntryLine.append(key: entry.key, value: entry.value, to: &$0)
          }
        }
        remaining -= 1
        let isLast = number == page.entries.count - 1 && page.next == nil
        if remaining == 0 { return isLast ? nil : PageCursor(after: entry.key, order: order) }
      }
      cursor = page.next
      if cursor == nil { return nil }
    }
    return cursor
  }

  /// Prints keys up to the limit; see ``printEntries(of:in:after:to:)``.
  private func printKeys(
    of store: some DataStore<JSONText>, in range: KeyRange, after cursor: PageCursor?, to output: ByteOutput
  ) async throws -> PageCursor? {
    var (last, remaining) = (cursor?.key, limit ?? .max)
    let rest = last.map { reverse ? range.before($0) : range.after($0) } ?? range
    for try await key in store.keys(in: rest, order: order) {
      if remaining == 0 { return last.map { PageCursor(after: $0, order: order) } }
      try output.writeJSON { EntryLine.append(key: key, to: &$0) }
      (last, remaining) = (key, remaining - 1)
    }
    return nil
  }
}

/// `larder export`.
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Print every entry, for import into another store.",
    discussion: """
      Prints a line of JSON for each entry, or for each entry within the bounds, in the order of the keys.

        larder export json:users.json > users.jsonl
        larder export json:users.json --prefix guest: --reverse
        larder export json:users.json | larder import json:copy.json
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @OptionGroup var range: RangeOptions
  @Flag(help: "Export from the highest key to the lowest.") var reverse = false

  func run() async throws {
    let range = try range.range()
    try await StoreSession.run(store.target, access: access.storeAccess) { store, output in
      for try await entry in store.present.entries(in: range, order: reverse ? .descending : .ascending) {
        try output.writeLine { EntryLine.append(key: entry.key, value: entry.value, to: &$0) }
      }
    }
  }
}

/// `larder count`.
struct CountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "count",
    abstract: "Print the number of entries.",
    discussion: """
        larder count json:users.json --prefix guest:
        larder count json:users.json --from 2026-01-01 --to 2026-02-01
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @OptionGroup var range: RangeOptions

  func run() async throws {
    let range = try range.range()
    try await StoreSession.run(store.target, access: access.storeAccess) { store, output in
      try output.writeLine("\(try await store.present.count(in: range))")
    }
  }
}

/// `larder stores`.
struct StoresCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stores",
    abstract: "Print the URLs of the stores in an LMDB environment, or in an SQLite or PostgreSQL database.",
    discussion: """
      Prints one URL in each line, in the order of the names. The list includes stores of other programs.

        larder stores lmdb:shop
        larder stores sqlite:shop.sqlite
        larder stores postgres:
      """)

  @Argument(help: ArgumentHelp("The file, folder or database, such as lmdb:shop.", valueName: "location"))
  var location: String
  @OptionGroup var access: AccessOption
  @OptionGroup var opening: OpeningOptions

  mutating func validate() throws {
    location = try ConfiguredStacks.url(location)
  }

  func run() async throws {
    try await StoreSession.runCollection(opening.target(location), access: access.storeAccess) { urls, output in
      for url in urls { try output.writeLine(url) }
    }
  }
}
