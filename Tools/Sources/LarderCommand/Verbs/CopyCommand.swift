import ArgumentParser
import Foundation
import Larder
import LarderExpiry

/// `larder copy`.
struct CopyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy",
    abstract: "Copy the entries of a store to another store.",
    discussion: """
      A missing destination is created. A key in both stores gets the value of the source. Values that are already equal \
      are not written again, so you can complete an interrupted copy by running it again. Other keys of the destination \
      stay. If values expire, their deadlines are copied, and the values of the destination must expire, too.

      With --key-ring, a new destination is encrypted, so you can encrypt a store by copying it.

      The destination stores values with the codec of the source. To convert them, name another codec, json or cbor, with \
      --codec.

        larder copy json:users.json json:backup.json
        larder copy json:users.json lmdb:users --codec cbor
        larder copy json:users.json json:guests.json --prefix guest:
        larder copy json:users.json json:backup.json --batch 10000
      """)

  /// The codecs that values of any codec can be converted to.
  private static let codecs = ["json", "cbor"]

  @Argument(help: ArgumentHelp("The store to copy from, such as json:users.json.", valueName: "source"))
  var source: String
  @Argument(help: ArgumentHelp("The store to copy to, such as json:backup.json.", valueName: "destination"))
  var destination: String
  @Option(
    name: .customLong("batch"),
    help: ArgumentHelp("The number of entries to read, compare and write in one commit.", valueName: "n"))
  var batchSize = 1000
  @Option(
    help: ArgumentHelp("The codec of the destination; defaults to the codec of the source.", valueName: "name"))
  var codec: String?
  @OptionGroup var range: RangeOptions
  @OptionGroup var access: AccessOption
  @OptionGroup var table: LayoutOption
  @OptionGroup var opening: OpeningOptions

  func validate() throws {
    guard batchSize >= 1 else { throw ValidationError("--batch must be at least 1") }
    guard codec.map({ CopyCommand.codecs.contains($0) }) ?? true else {
      throw ValidationError("--codec must be one of \(CopyCommand.codecs.joined(separator: ", "))")
    }
  }

  func run() async throws {
    guard try StoreURL(source) != StoreURL(destination) else {
      throw CommandFailure(.usage, "\(source) cannot be copied to itself", advice: "Give another destination.")
    }
    let keys = try range.range()
    let start = ContinuousClock.now
    var copy = StoreCopy(batchSize: batchSize)
    // If the values of the source expire, the values of the destination must, too, to keep the deadlines.
    let sourceTarget = opening.target(source)
    let destinationTarget = opening.target(destination, sharingKeysOf: sourceTarget, layout: table.layout)
    try await StoreSession.run(sourceTarget, access: try sourceAccess()) { source, _ in
      do {
        let timeToLive: TimeToLive? = source.expiry == nil ? nil : .unlimited
        try await StoreSession.run(
          destinationTarget, createsIfMissing: true, timeToLive: timeToLive,
          codecName: codec ?? source.codecName
        ) { destination, _ in
          // Only the bar needs the count, which can cost as much as reading.
          var display = ProgressDisplay(total: nil, since: start)
          if display != nil { display = ProgressDisplay(total: try await source.storedCount(in: keys), since: start) }
          defer { display?.clear() }
          try await copy.run(in: keys, from: source, to: destination) {
            display?.update(done: $0, entries: $0)
          }
        }
      } catch let error as StoreError where error.code == .locked && error.operation == .open {
        throw CommandFailure(error, hint: "A store cannot be copied to itself under another name either.")
      }
    }
    Diagnostics.writeLine(copy.summary(elapsed: ContinuousClock.now - start))
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
/// Values that are already equal are not written again, so that a second copy completes an interrupted one.
struct StoreCopy {
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
  ///   - destination: The store to copy to, whose values must expire if those of the source do. Its other keys stay.
  ///   - batchWasCopied: Called with the number of entries so far, after each batch.
  /// - Throws: ``CommandFailure`` if only the values of the source expire; the errors of the stores. The batches before an
  ///   error are copied.
  mutating func run(
    in range: KeyRange, from source: OpenedStore, to destination: OpenedStore, batchWasCopied: (_ count: Int) -> Void
  ) async throws {
    func note(_ progress: CopyProgress) {
      self.progress = progress
      batchWasCopied(progress.copiedCount + progress.equalCount)
    }
    if let source = source.expiry {
      let now = Date.now
      try await source.base.copy(
        to: try destination.expiring().base, in: range, batchSize: batchSize, progress: note
      ) { value in
        value.deadline.map { now < $0.date } ?? true ? value : nil
      }
    } else if let destination = destination.expiry {
      try await source.present.copy(to: destination.base, in: range, batchSize: batchSize, progress: note) {
        Expiring($0)
      }
    } else {
      try await source.present.copy(to: destination.present, in: range, batchSize: batchSize, progress: note)
    }
  }

  /// Returns a summary in one line.
  ///
  /// - Parameter elapsed: The duration of the copy.
  func summary(elapsed: Duration) -> String {
    let rest = progress.equalCount == 1 ? "1 was already equal" : "\(progress.equalCount) were already equal"
    return "copied \(EntryCount.text(progress.copiedCount)) in \(elapsed.inSeconds), \(rest)"
  }
}
