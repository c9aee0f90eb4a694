import ArgumentParser
import Foundation
import Larder
import LarderExpiry

/// `larder copy`.
struct CopyCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy",
    abstract: "Put every entry of a store into another.",
    discussion: """
      Makes the destination where it is missing. A key of both stores gets the value of the source, and what is equal \
      already is not written again: run again, an interrupted copy goes on. Keys that only the destination has stay. Where \
      values expire, their deadlines go along, and the destination has to be one whose values expire.

      The destination keeps values as the source does, in the same codec; --codec names another one, json or cbor.

        larder copy json:users.json json:backup.json
        larder copy json:users.json lmdb:users --codec cbor
        larder copy json:users.json json:guests.json --prefix guest:
        larder copy json:users.json json:backup.json --batch 10000
      """)

  /// What values can be written in whatever they were in.
  private static let codecs = ["json", "cbor"]

  @Argument(help: ArgumentHelp("The store to copy from, like json:users.json.", valueName: "source"))
  var source: String
  @Argument(help: ArgumentHelp("The store to copy to, like json:backup.json.", valueName: "destination"))
  var destination: String
  @Option(
    name: .customLong("batch"),
    help: ArgumentHelp("How many entries are read, compared and written at once, in one commit.", valueName: "n"))
  var batchSize = 1000
  @Option(
    help: ArgumentHelp("The codec of the destination's values; that of the source unless given.", valueName: "name"))
  var codec: String?
  @OptionGroup var range: RangeOptions
  @OptionGroup var access: AccessOption
  @OptionGroup var opening: OpeningOptions

  func validate() throws {
    guard batchSize >= 1 else { throw ValidationError("--batch must be at least 1") }
    guard codec.map({ CopyCommand.codecs.contains($0) }) ?? true else {
      throw ValidationError("--codec is one of \(CopyCommand.codecs.joined(separator: ", "))")
    }
  }

  func run() async throws {
    guard try StoreURL(source) != StoreURL(destination) else {
      throw CommandFailure(.usage, "\(source) cannot be copied to itself", advice: "Give it another destination.")
    }
    let keys = try range.range()
    let start = ContinuousClock.now
    var copy = StoreCopy(pageSize: batchSize)
    // Where the values of the source expire, so must those of the destination: their deadlines go along.
    try await StoreSession.runOpened(
      opening.target(source), createsIfMissing: false, access: try sourceAccess()
    ) { source, _ in
      do {
        let expiration: Expiration? = source.expiry == nil ? nil : .never
        try await StoreSession.runOpened(
          opening.target(destination), createsIfMissing: true, expiration: expiration,
          codecName: codec ?? source.codecName
        ) { destination, _ in
          // Counting is for the bar alone, and can cost as much as reading.
          var display = ProgressDisplay(total: nil, since: start)
          if display != nil { display = ProgressDisplay(total: try await source.stored.count(in: keys), since: start) }
          defer { display?.clear() }
          let now = Date.now
          try await copy.run(in: keys, from: source.stored, to: destination.stored) {
            display?.update(done: $0.visited, entries: $0.visited)
          } where: {
            source.expiry == nil || $0.deadline.map { now < $0.date } ?? true
          }
        }
      } catch let error as StoreError where error.code == .locked && error.operation == .open {
        throw CommandFailure(error, hint: "A store cannot be copied to itself under another name, either.")
      }
    }
    Diagnostics.writeLine(copy.summary(elapsed: ContinuousClock.now - start))
  }

  /// Where both stores are in one environment, the source is opened as the destination is.
  private func sourceAccess() throws -> StoreAccess {
    try access.access == nil && Stores.shareEnvironment(source, destination) ? .readWrite : access.storeAccess
  }
}
