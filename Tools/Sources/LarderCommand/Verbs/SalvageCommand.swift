import ArgumentParser
import Larder
import LarderExpiry

/// `larder salvage`.
struct SalvageCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "salvage",
    abstract: "Copy the readable entries of a damaged store to a new one, and list the others.",
    discussion: """
      The damaged store is opened read-only and stays unchanged. Prints a line {"key":...,"message":...} for each key \
      that cannot be read, and {"from":...,"upTo":...,"message":...} for a range of unknown keys, which excludes its \
      end; a missing bound is null. Exits with 2 if there are such lines. The new store must have no entries. Without \
      --key-ring, encrypted values are copied as they are stored.

        larder salvage json:users.json json:rescued.json
        larder salvage compressed:users.gz compressed:rescued.gz
      """)

  @Argument(help: ArgumentHelp("The damaged store, such as compressed:users.gz.", valueName: "source"))
  var source: String
  @Argument(help: ArgumentHelp("The store to create, such as compressed:rescued.gz.", valueName: "target"))
  var target: String
  @OptionGroup var access: AccessOption
  @OptionGroup var table: LayoutOption
  @OptionGroup var opening: OpeningOptions

  func run() async throws {
    guard try StoreURL(source) != StoreURL(target) else {
      throw CommandFailure(
        .usage, "\(source) cannot be salvaged into itself", advice: "Give a store that does not exist yet.")
    }
    var salvage = StoreSalvage()
    let sourceTarget = opening.target(source)
    let newTarget = opening.target(target, sharingKeysOf: sourceTarget, layout: table.layout)
    var isLocked = false
    try await StoreSession.runMovable(sourceTarget, access: access.storeAccess) { found in
      isLocked = found.isLocked
      return try await MovableStore(decodingIfPossible: found)
    } _: { source, output in
      if case .stored(let source) = source, try await !source.hasDictionaries(at: target) {
        throw source.missingDictionaries
      }
      try await StoreSession.runMovable(
        newTarget, createsIfMissing: true, expires: source.expires, codecName: source.codecName
      ) { found in
        guard case .stored(let source) = source else { return .json(try await OpenedStore(found)) }
        let target = try await StoredStore(found)
        guard source.fits(target) else { throw found.missingKeys }
        return .stored(target)
      } _: { target, _ in
        guard try await target.storedCount(in: .all) == 0 else {
          throw CommandFailure(
            .usage, "\(self.target) already has entries",
            advice: "Give a store that does not exist yet, or remove its entries with larder clear.")
        }
        try await salvage.run(from: source, to: target) { keys, error in
          try output.writeLine { EntryLine.append(keys, message: error.fullMessage, to: &$0) }
        }
      }
    }
    Diagnostics.writeLine(salvage.summary + MovableStore.remark(isLocked: isLocked))
    if salvage.unreadable > 0 { throw ExitStatus.damaged }
  }
}

/// A copy of the readable entries of a damaged store, which reports the others.
///
/// It uses scans only. If a page cannot be read, it is read in smaller pieces, down to single entries, so that all entries
/// before the damage are copied. The copy then continues after the keys that the error names.
struct StoreSalvage {
  /// The maximum number of entries in a page.
  private static let largestPage = 1000

  /// The number of copied entries.
  private(set) var copied = 0

  /// The number of keys and ranges that could not be read.
  private(set) var unreadable = 0

  /// Copies all readable entries.
  ///
  /// - Parameters:
  ///   - source: The damaged store.
  ///   - destination: The store to copy to, in the same form.
  ///   - report: Receives each key that cannot be read, or a range if the keys are unknown, and the error.
  /// - Throws: ``CommandFailure`` if only the values of one store expire; the errors of
  ///   ``run(from:to:report:)-(DataStore<Value>,_,_)``.
  mutating func run(
    from source: MovableStore, to destination: MovableStore, report: (KeyRange, StoreError) throws -> Void
  ) async throws {
    switch (source, destination) {
    case (.json(let source), .json(let destination)):
      if let source = source.expiry {
        try await run(from: source.base, to: try destination.expiring().base, report: report)
      } else {
        try await run(from: source.present, to: destination.present, report: report)
      }
    case (.stored(let source), .stored(let destination)):
      switch (source.entries, destination.entries) {
      case (.plain(let source), .plain(let destination)):
        try await run(from: source, to: destination, report: report)
      case (.expiring(let source), .expiring(let destination)):
        try await run(from: source, to: destination, report: report)
      default: throw StoreCopy.NeedsConversion()
      }
    default: throw StoreCopy.NeedsConversion()
    }
  }

  /// Copies all readable entries.
  ///
  /// - Parameters:
  ///   - source: The damaged store.
  ///   - destination: The store to copy to.
  ///   - report: Receives each key that cannot be read, or a range if the keys are unknown, and the error.
  /// - Throws: The errors of the destination and of `report`; the errors of the source, except for damage.
  mutating func run<Value>(
    from source: some DataStore<Value>, to destination: some DataStore<Value>,
    report: (KeyRange, StoreError) throws -> Void
  ) async throws {
    var remaining: KeyRange? = .all
    var size = StoreSalvage.largestPage
    while let range = remaining {
      let page: [StoreEntry<Value>]
      do {
        page = try await source.entries(in: range, limit: size, order: .ascending)
      } catch let error as StoreError where error.concernsStoredValue {
        guard size == 1 else {
          size /= 2
          continue
        }
        let lost = StoreSalvage.lostKeys(of: error, from: range)
        try report(lost, error)
        unreadable += 1
        remaining = lost.upperBound.map { $0... }
        continue
      }
      if !page.isEmpty {
        try await destination.apply(ChangeBatch(page.map { .set($0.key, $0.value) }))
      }
      copied += page.count
      remaining = page.count < size ? nil : page.last.map { range.after($0.key) }
      size = min(StoreSalvage.largestPage, size * 2)
    }
  }

  /// Returns the keys at or after the beginning of a range that cannot be read according to an error.
  private static func lostKeys(of error: StoreError, from range: KeyRange) -> KeyRange {
    let named = (error.underlying as? any UnreadableKeysError)?.keys ?? error.key.map { KeyRange.only($0) }
    // An error that names no keys, or only keys before the range, leaves no key to continue at.
    guard let named, named.upperBound.map({ range.lowerBound < $0 }) ?? true else { return range }
    return KeyRange(from: max(range.lowerBound, named.lowerBound), upTo: named.upperBound)
  }

  /// The summary in one line.
  var summary: String {
    let lost =
      switch unreadable {
      case 0: "everything could be read"
      case 1: "1 key or range could not be read"
      default: "\(unreadable) keys or ranges could not be read"
      }
    return "copied \(EntryCount.text(copied)), \(lost)"
  }
}
