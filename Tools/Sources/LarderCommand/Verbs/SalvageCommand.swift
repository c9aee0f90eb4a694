import ArgumentParser
import Larder
import LarderCompressedFile
import LarderExpiry
import StoreAccess

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

      If a block of a compressed: store is damaged and its changes are unknown, it may have replaced or removed any entry \
      before it. Such entries are copied only with --possibly-older, and have a line {"key":...,"isPossiblyOlder":true}. \
      The same is true for entries of an lmdb: store below a damaged page, if the file does not tell whether they are the \
      latest ones, and of this store.

        larder salvage json:users.json json:rescued.json
        larder salvage compressed:users.gz compressed:rescued.gz
      """)

  @Argument(help: ArgumentHelp("The damaged store, such as compressed:users.gz.", valueName: "source"))
  var source: String
  @Argument(help: ArgumentHelp("The store to create, such as compressed:rescued.gz.", valueName: "target"))
  var target: String
  @Flag(help: "Also copy entries that damage may have replaced by newer ones, or removed, and list their keys.")
  var possiblyOlder = false
  @Option(
    help: ArgumentHelp(
      "The codec of the source if it is a table of another program, which records none.", valueName: "name"))
  var codec: StoreCodec?
  @OptionGroup var access: AccessOption
  @OptionGroup var table: LayoutOption
  @OptionGroup var opening: OpeningOptions

  mutating func validate() throws {
    (source, target) = (try ConfiguredStacks.url(source), try ConfiguredStacks.url(target))
  }

  func run() async throws {
    guard try StoreURL(source) != StoreURL(target) else {
      throw CommandFailure(
        .usage, "\(source) cannot be salvaged into itself", advice: "Give a store that does not exist yet.")
    }
    var salvage = StoreSalvage()
    var sourceTarget = opening.target(source, codec: CodecChoice(codec: codec))
    let newTarget = opening.target(
      target, sharingKeysOf: sourceTarget, layout: table.layout, codec: CodecChoice(codec: codec))
    sourceTarget.examinesPages = true
    sourceTarget.findsPossiblyOlder = possiblyOlder
    // Before anything is copied, because the option is not for all stores.
    _ = try Stores.provider(for: StoreURL(source), sourceTarget)
    sourceTarget.findsPossiblyOlder = false
    var (isLocked, openingError): (Bool, StoreError?) = (false, nil)
    func copy(_ source: MovableStore, _ target: MovableStore, _ output: ByteOutput) async throws {
      try await checkEmpty(target)
      try await salvage.run(from: source, to: target) { keys, error in
        try output.writeLine { EntryLine.append(keys, message: error.fullMessage, to: &$0) }
      }
      for (block, count) in salvage.possiblyOlder.sorted(by: { $0.key < $1.key }) {
        let entries = count == 1 ? "1 entry" : "\(count) entries"
        let message =
          "the store's file is damaged at byte \(block), and the changes there are unknown; they may have replaced or "
          + "removed \(entries) before it"
        try output.writeLine {
          EntryLine.append(
            .all, message: possiblyOlder ? message : "\(message), which --possibly-older copies, too", to: &$0)
        }
      }
    }
    do {
      isLocked = try await move(from: sourceTarget, to: newTarget, copy)
    } catch let error as StoreError where possiblyOlder && error.code == .corrupted && error.operation == .open {
      // The store may be found in an older state.
      openingError = error
    }
    // Each loss of an LMDB store can have such entries in its place.
    if possiblyOlder, salvage.unreadable > 0 || openingError != nil {
      sourceTarget.findsPossiblyOlder = true
      isLocked = try await move(from: sourceTarget, to: newTarget) { source, target, output in
        if let openingError {
          try await checkEmpty(target)
          try salvage.count(.all, openingError) { keys, error in
            try output.writeLine { EntryLine.append(keys, message: error.fullMessage, to: &$0) }
          }
        }
        try await salvage.runForPossiblyOlder(from: source, to: target) { key in
          try output.writeLine { EntryLine.append(key: key, [("isPossiblyOlder", "true")], to: &$0) }
        }
      }
    }
    Diagnostics.writeLine(salvage.summary + MovableStore.remark(isLocked: isLocked))
    if salvage.unreadable > 0 { throw ExitStatus.damaged }
  }

  private func checkEmpty(_ store: MovableStore) async throws {
    guard try await store.storedCount(in: .all) == 0 else {
      throw CommandFailure.hasEntries(target)
    }
  }

  /// Opens both stores in the same form, and calls a closure.
  ///
  /// - Returns: A Boolean value that indicates whether the values are encrypted, and the caller gave no keys.
  private func move(
    from source: StoreTarget, to new: StoreTarget,
    _ body: (_ source: MovableStore, _ target: MovableStore, ByteOutput) async throws -> Void
  ) async throws -> Bool {
    var isLocked = false
    try await StoreSession.runMovable(source, access: access.storeAccess) { found in
      isLocked = found.isLocked
      return try await MovableStore(decodingIfPossible: found)
    } _: { source, output in
      if case .stored(let source) = source, try await !source.hasDictionaries(at: target) {
        throw source.missingDictionaries
      }
      try await StoreSession.runMovable(
        new, createsIfMissing: true, expires: source.expires, codecName: source.codecName
      ) { found in
        guard case .stored(let source) = source else { return .json(try await OpenedStore(found)) }
        let target = try await StoredStore(found)
        guard source.fits(target) else { throw found.missingKeys }
        return .stored(target)
      } _: { target, _ in
        try await body(source, target, output)
      }
    }
    return isLocked
  }
}

/// A copy of the readable entries of a damaged store, which reports the others.
struct StoreSalvage {
  /// The number of copied entries.
  private(set) var copied = 0

  /// The number of copied entries that may be older than the latest ones.
  private(set) var copiedOlder = 0

  /// The number of keys and ranges that could not be read.
  ///
  /// Unknown changes count as one range.
  private(set) var unreadable = 0

  /// The offsets of damaged blocks whose changes are unknown, each with the number of entries that they may have replaced.
  private(set) var possiblyOlder: [Int64: Int] = [:]

  /// Copies all readable entries.
  ///
  /// - Parameters:
  ///   - source: The damaged store.
  ///   - destination: The store to copy to, in the same form.
  ///   - report: Receives each key that cannot be read, or a range if the keys are unknown, and the error. Keys that unknown
  ///     changes may have affected are only counted in ``possiblyOlder``.
  /// - Throws: ``CommandFailure`` if only the values of one store expire; the errors of the destination and of `report`; the
  ///   errors of the source, except for damage.
  mutating func run(
    from source: MovableStore, to destination: MovableStore, report: (KeyRange, StoreError) throws -> Void
  ) async throws {
    try await run(StorePair(source, destination), note: { _ in }, report: report)
  }

  /// Copies the entries that a source has and the destination has not.
  ///
  /// - Parameters:
  ///   - source: The damaged store, which finds entries that may be older.
  ///   - destination: The store to copy to, with the entries that are certain.
  ///   - note: Receives the key of each entry that was copied.
  /// - Throws: As ``run(from:to:report:)``.
  mutating func runForPossiblyOlder(
    from source: MovableStore, to destination: MovableStore, note: (StoreKey) throws -> Void
  ) async throws {
    try await run(StorePair(source, destination), isForOlder: true, note: note, report: { _, _ in })
  }

  /// Two stores with values of the same type.
  private enum StorePair {
    case json(AnyDataStore<JSONText>, AnyDataStore<JSONText>)
    case expiring(AnyDataStore<Expiring<JSONText>>, AnyDataStore<Expiring<JSONText>>)
    case stored(AnyDataStore<[UInt8]>, AnyDataStore<[UInt8]>)
    case storedExpiring(AnyDataStore<Expiring<[UInt8]>>, AnyDataStore<Expiring<[UInt8]>>)

    init(_ source: MovableStore, _ destination: MovableStore) throws {
      switch (source, destination) {
      case (.json(let source), .json(let destination)):
        if let source = source.expiry {
          self = .expiring(source.base, try destination.expiring().base)
        } else {
          self = .json(source.present, destination.present)
        }
      case (.stored(let source), .stored(let destination)):
        switch (source.entries, destination.entries) {
        case (.plain(let source), .plain(let destination)): self = .stored(source, destination)
        case (.expiring(let source), .expiring(let destination)): self = .storedExpiring(source, destination)
        default: throw StoreCopy.NeedsConversion()
        }
      default: throw StoreCopy.NeedsConversion()
      }
    }
  }

  private mutating func run(
    _ pair: StorePair, isForOlder: Bool = false, note: (StoreKey) throws -> Void,
    report: (KeyRange, StoreError) throws -> Void
  ) async throws {
    switch pair {
    case .json(let source, let target):
      try await run(from: source, to: target, isForOlder: isForOlder, note: note, report: report)
    case .expiring(let source, let target):
      try await run(from: source, to: target, isForOlder: isForOlder, note: note, report: report)
    case .stored(let source, let target):
      try await run(from: source, to: target, isForOlder: isForOlder, note: note, report: report)
    case .storedExpiring(let source, let target):
      try await run(from: source, to: target, isForOlder: isForOlder, note: note, report: report)
    }
  }

  private mutating func run<Value>(
    from source: some DataStore<Value>, to destination: some DataStore<Value>, isForOlder: Bool,
    note: (StoreKey) throws -> Void, report: (KeyRange, StoreError) throws -> Void
  ) async throws {
    let batchSize = min(1000, destination.information.maximumChangeCount ?? .max)
    for try await part in source.salvage(batchSize: batchSize) {
      switch part {
      case .unreadable(let lost, let error):
        if !isForOlder { try count(lost, error, report: report) }
      case .entries(var entries):
        if isForOlder {
          let present = try await destination.values(forKeys: entries.map(\.key)).map { $0 != nil }
          entries = zip(entries, present).filter { !$1 }.map(\.0)
        }
        if !entries.isEmpty {
          try await destination.apply(ChangeBatch(entries.map { .set($0.key, $0.value) }))
        }
        if isForOlder { copiedOlder += entries.count } else { copied += entries.count }
        for entry in entries { try note(entry.key) }
      }
    }
  }

  /// Counts and reports keys that cannot be read.
  mutating func count(
    _ lost: KeyRange, _ error: StoreError, report: (KeyRange, StoreError) throws -> Void
  ) throws {
    guard let damage = error.underlying as? DamagedBlockError, damage.hasUnknownChanges else {
      unreadable += 1
      return try report(lost, error)
    }
    if possiblyOlder[damage.block] == nil { unreadable += 1 }
    // A range has no known entry.
    possiblyOlder[damage.block, default: 0] += lost == .only(lost.lowerBound) ? 1 : 0
  }

  /// The summary in one line.
  var summary: String {
    let lost =
      switch unreadable {
      case 0: "everything could be read"
      case 1: "1 key or range could not be read"
      default: "\(unreadable) keys or ranges could not be read"
      }
    let older = copiedOlder == 0 ? "" : ", \(EntryCount.text(copiedOlder)) possibly older"
    return "copied \(EntryCount.text(copied))\(older), \(lost)"
  }
}
