import ArgumentParser
import Larder
import StoreAccess

/// `larder diff`.
struct DiffCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Print the keys for which two stores differ.",
    discussion: """
      Prints a line {"key":...,"difference":...} for each key, in the order of the keys. The difference is "only in \
      first", "only in second" or "value". Exits with 5 if there is any. Values are compared as JSON, whatever the \
      codecs of the stores, but 1.0 and 1 differ. Deadlines are not compared.

        larder diff json:users.json json:backup.json
        larder diff json:users.json lmdb:users --prefix guest:
      """)

  @Argument(help: ArgumentHelp("The first store, such as json:users.json.", valueName: "first"))
  var first: String
  @Argument(help: ArgumentHelp("The second store, such as json:backup.json.", valueName: "second"))
  var second: String
  @Option(
    help: ArgumentHelp("The codec of the first store if it is a table of another program.", valueName: "name"))
  var firstCodec: StoreCodec?
  @Option(
    help: ArgumentHelp("The codec of the second store if it is a table of another program.", valueName: "name"))
  var secondCodec: StoreCodec?
  @OptionGroup var range: RangeOptions
  @OptionGroup var access: AccessOption
  @OptionGroup var opening: OpeningOptions

  mutating func validate() throws {
    (first, second) = (try ConfiguredStacks.url(first), try ConfiguredStacks.url(second))
  }

  func run() async throws {
    let keys = try range.range()
    let firstTarget = opening.target(first, codec: CodecChoice(codec: firstCodec, option: "--first-codec"))
    let secondTarget = opening.target(
      second, sharingKeysOf: firstTarget, codec: CodecChoice(codec: secondCodec, option: "--second-codec"))
    let differs = try await StoreSession.run(firstTarget, access: access.storeAccess) { first, output in
      try first.checkNotLocked()
      return try await StoreSession.run(secondTarget, access: access.storeAccess) { second, _ in
        try second.checkNotLocked()
        var differs = false
        try await first.present.forEachDifference(from: second.present, in: keys) { difference in
          differs = true
          try output.writeLine {
            EntryLine.append(
              key: difference.key, [("difference", "\"\(DiffCommand.words(for: difference.kind))\"")], to: &$0)
          }
        }
        return differs
      }
    }
    if differs { throw ExitStatus.different }
  }

  private static func words(for kind: StoreDifference.Kind) -> String {
    switch kind {
    case .onlyInFirst: "only in first"
    case .onlyInSecond: "only in second"
    case .value: "value"
    }
  }
}
