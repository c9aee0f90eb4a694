import ArgumentParser
import Foundation
import Larder
import LarderExpiry
import StoreAccess

/// `larder copy`.
struct CopyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy",
    abstract: "Copy the entries of a store to another store.",
    discussion: """
      A missing destination is created, and removed again if nothing can be written to it. A key in both stores gets the \
      value of the source. Values that are already equal are not written again, so you can complete an interrupted copy by \
      running it again. Other keys of the destination stay. If values expire, their deadlines are copied, and the values \
      of the destination must expire, too.

      With --key-ring, a new destination is encrypted, so you can encrypt a store by copying it.

      The destination stores values with the codec of the source, and they are copied as they are stored. To convert them, \
      name another codec, json, cbor or raw, with --codec. Encrypted values are copied without --key-ring, too, and not examined.

        larder copy json:users.json json:backup.json
        larder copy json:users.json lmdb:users --codec cbor
        larder copy json:users.json json:guests.json --prefix guest:
        larder copy json:users.json json:backup.json --batch 10000
      """)

  @Argument(help: ArgumentHelp("The store to copy from, such as json:users.json.", valueName: "source"))
  var source: String
  @Argument(help: ArgumentHelp("The store to copy to, such as json:backup.json.", valueName: "destination"))
  var destination: String
  @Option(
    name: .customLong("batch"),
    help: ArgumentHelp("The number of entries to read, compare and write in one commit.", valueName: "n"))
  var batchSize = 1000
  @Option(
    help: ArgumentHelp("The codec of the destination. Defaults to the codec of the source.", valueName: "name"))
  var codec: StoreCodec?
  @Option(
    help: ArgumentHelp(
      "The codec of the source if it is a table of another program, which records none.", valueName: "name"))
  var fromCodec: StoreCodec?
  @OptionGroup var range: RangeOptions
  @OptionGroup var access: AccessOption
  @OptionGroup var table: LayoutOption
  @OptionGroup var opening: OpeningOptions

  mutating func validate() throws {
    (source, destination) = (try ConfiguredStacks.url(source), try ConfiguredStacks.url(destination))
    guard batchSize >= 1 else { throw ValidationError("--batch must be at least 1") }
  }

  func run() async throws {
    guard try StoreURL(source) != StoreURL(destination) else {
      throw CommandFailure(.usage, "\(source) cannot be copied to itself", advice: "Give another destination.")
    }
    do {
      try await copy(canMoveBytes: true)
    } catch is StoreCopy.NeedsConversion {
      try await copy(canMoveBytes: false)
    }
  }

  /// Copies the entries.
  ///
  /// - Parameter canMoveBytes: A Boolean value that indicates whether values may be moved as they are stored.
  /// - Throws: ``StoreCopy/NeedsConversion``, with nothing copied, if they cannot be moved like that; other errors.
  private func copy(canMoveBytes: Bool) async throws {
    let keys = try range.range()
    let start = ContinuousClock.now
    var copy = StoreCopy(batchSize: batchSize)
    let sourceTarget = opening.target(source, codec: CodecChoice(codec: fromCodec, option: "--from-codec"))
    let destinationTarget = opening.target(
      destination, sharingKeysOf: sourceTarget, layout: table.layout, codec: CodecChoice(codec: codec))
    var isLocked = false
    try await StoreSession.runMovable(sourceTarget, access: try sourceAccess()) { found in
      isLocked = found.isLocked
      if canMoveBytes, keepsStoredValues(of: found) { return .stored(try await StoredStore(found)) }
      if found.isLocked { throw found.missingKeys }
      return .json(try await OpenedStore(found))
    } _: { source, _ in
      // Both before the destination is created. A copy whose first batch fails leaves no empty store.
      if case .stored(let source) = source, try await !source.hasDictionaries(at: destination) {
        throw isLocked ? source.missingDictionaries : StoreCopy.NeedsConversion()
      }
      try await source.checkFirst(
        in: keys, limit: batchSize, encodableBy: codec.map { ValueCodecs().codec(named: $0.rawValue) })
      let newFiles = try NewStoreFiles(of: destination)
      // If set, nothing was written to the destination.
      var isUnused = false
      do {
        // If the values of the source expire, the values of the destination must, too, to keep the deadlines.
        try await StoreSession.runMovable(
          destinationTarget, createsIfMissing: true, expires: source.expires,
          codecName: codec?.rawValue ?? source.codecName
        ) { found in
          guard case .stored(let source) = source else { return .json(try await OpenedStore(found)) }
          let destination = try await StoredStore(found)
          guard source.fits(destination) else { throw StoreCopy.NeedsConversion() }
          return .stored(destination)
        } _: { destination, _ in
          // Only the bar needs the count, which can cost as much as reading.
          var display = ProgressDisplay(total: nil, since: start)
          if display != nil { display = ProgressDisplay(total: try await source.storedCount(in: keys), since: start) }
          defer { display?.clear() }
          do {
            try await copy.run(in: keys, from: source, to: destination) {
              display?.update(done: $0, entries: $0)
            }
          } catch {
            // Another program may have written entries to the new store. The first error matters more than one of counting,
            // after which the files stay.
            let count = try? await destination.storedCount(in: .all)
            isUnused = copy.progress.copiedCount == 0 && count == 0
            throw error
          }
        }
      } catch let error as StoreError where error.code == .locked && error.operation == .open {
        throw CommandFailure(error, hint: "A store cannot be copied to itself under another name either.")
      } catch {
        // A store that exists can be opened on a full disk, so this one was not created completely.
        let failure = error as? StoreError
        if isUnused || failure?.code == .full && failure?.operation == .open { newFiles.remove() }
        throw error
      }
    }
    let summary = copy.summary(elapsed: ContinuousClock.now - start)
    Diagnostics.writeLine(summary + MovableStore.remark(isLocked: isLocked))
  }

  /// Returns whether the values of a store are copied as they are stored.
  ///
  /// With the key ring, they are encrypted with its primary key. JSON is compared and checked as text.
  private func keepsStoredValues(of source: FoundStore) -> Bool {
    source.codecs.keys == nil && source.codecs.codec(named: "\(source.name)").format != .json
      && codec.map { CodecName($0.rawValue) == source.name.withoutDeadlines } ?? true
  }

  /// Returns the access for the source.
  ///
  /// If both stores are in one environment, it is the access of the destination.
  private func sourceAccess() throws -> StoreAccess {
    try access.access == nil && Stores.shareFiles(source, destination) ? .readWrite : access.storeAccess
  }
}

/// A copy of the entries of one store to another, batch by batch.
///
/// Values that are already equal are not written again, so a second copy completes an interrupted one.
struct StoreCopy {
  /// An error that says that values cannot be moved as they are stored, because the destination stores them differently.
  struct NeedsConversion: Error {}

  private let batchSize: Int

  /// The progress of the copy.
  var progress = CopyProgress()

  /// Creates a copy that has not begun.
  ///
  /// - Parameter batchSize: The number of entries to read, compare and write in one commit, at least 1.
  init(batchSize: Int) {
    self.batchSize = batchSize
  }

  /// Copies the entries of a range that have not expired, with their deadlines.
  ///
  /// - Parameters:
  ///   - range: The keys to copy.
  ///   - source: The store to copy from.
  ///   - destination: The store to copy to, in the same form, whose values must expire if those of the source do. Its other
  ///     keys stay.
  ///   - batchWasCopied: Called with the number of entries so far, after each batch.
  /// - Throws: ``CommandFailure`` if only the values of the source expire; ``NeedsConversion`` if the forms differ; the
  ///   errors of the stores. The batches before an error are copied.
  mutating func run(
    in range: KeyRange, from source: MovableStore, to destination: MovableStore,
    batchWasCopied: (_ count: Int) -> Void
  ) async throws {
    switch (source, destination) {
    case (.json(let source), .json(let destination)):
      if let expiring = source.expiry?.base {
        try await copyPresent(range, from: expiring, to: try destination.expiring().base, batchWasCopied)
      } else if let expiring = destination.expiry?.base {
        try await copyPlain(range, from: source.present, to: expiring, batchWasCopied)
      } else {
        try await copy(range, from: source.present, to: destination.present, batchWasCopied) { $0 }
      }
    case (.stored(let source), .stored(let destination)):
      switch (source.entries, destination.entries) {
      case (.plain(let source), .plain(let destination)):
        try await copy(range, from: source, to: destination, batchWasCopied) { $0 }
      case (.plain(let source), .expiring(let destination)):
        try await copyPlain(range, from: source, to: destination, batchWasCopied)
      case (.expiring(let source), .expiring(let destination)):
        try await copyPresent(range, from: source, to: destination, batchWasCopied)
      case (.expiring, .plain): throw NeedsConversion()
      }
    default: throw NeedsConversion()
    }
  }

  /// Copies entries that have not expired.
  private mutating func copyPresent<Value: Equatable>(
    _ range: KeyRange, from source: some DataStore<Expiring<Value>>, to destination: some DataStore<Expiring<Value>>,
    _ batchWasCopied: (Int) -> Void
  ) async throws {
    let now = Date.now
    try await copy(range, from: source, to: destination, batchWasCopied) { value in
      value.deadline.map { now < $0.date } ?? true ? value : nil
    }
  }

  /// Copies entries that do not expire to a store of values that can.
  private mutating func copyPlain<Value: Equatable>(
    _ range: KeyRange, from source: some DataStore<Value>, to destination: some DataStore<Expiring<Value>>,
    _ batchWasCopied: (Int) -> Void
  ) async throws {
    try await copy(range, from: source, to: destination, batchWasCopied) { Expiring($0) }
  }

  private mutating func copy<Value, Other: Equatable>(
    _ range: KeyRange, from source: some DataStore<Value>, to destination: some DataStore<Other>,
    _ batchWasCopied: (Int) -> Void, converting convert: (Value) -> Other?
  ) async throws {
    func note(_ progress: CopyProgress) {
      self.progress = progress
      batchWasCopied(progress.copiedCount + progress.equalCount)
    }
    try await source.copy(
      to: destination, in: range, batchSize: batchSize, progress: note, converting: convert)
  }

  /// Returns a summary in one line.
  ///
  /// - Parameter elapsed: The duration of the copy.
  func summary(elapsed: Duration) -> String {
    let rest = progress.equalCount == 1 ? "1 was already equal" : "\(progress.equalCount) were already equal"
    return "copied \(EntryCount.text(progress.copiedCount)) in \(elapsed.inSeconds), \(rest)"
  }
}
