import ArgumentParser
import Larder
import LarderExpiry
import StoreAccess

/// `larder stat`.
struct StatCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stat",
    abstract: "Print the properties and the size of a store.",
    discussion: """
      Prints a table, or with --json one object with name, codec, durability, sharing, entryCount, bytesOnDisk (null if \
      the store is not on disk) and details, which are figures that depend on the kind of store. If the values have \
      versions, the number of values of each version follows, as versions.

      With --sizes, all values are read, and counted by their length as JSON, each power of two by itself.

        larder stat json:users.json
        larder stat json:users.json --sizes
        larder stat json:users.json --json
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @Flag(name: .customLong("sizes"), help: "Also count the values by their length.") var countsSizes = false
  @Flag(name: .customLong("json"), help: "Print one JSON object instead of the table.") var printsJSON = false

  func run() async throws {
    try await StoreSession.run(store.target, access: access.storeAccess) { store, output in
      var summary = try await StoreSummary(of: store.present)
      summary.codecName = store.codecName
      summary.versions = try await store.versionCounts()
      if countsSizes { summary.sizes = try await SizeCounts(of: store) }
      if printsJSON {
        try output.writeLine { summary.appendJSON(to: &$0) }
      } else {
        for line in summary.table(isForPeople: Descriptor.standardOutput.isTerminal) { try output.writeLine(line) }
      }
    }
  }
}

/// The properties and the size of a store, as `larder stat` prints them.
struct StoreSummary {
  /// The description of the store.
  let information: StoreInformation

  /// The size of the store and further figures.
  let statistics: StoreStatistics

  /// The name of the codec of the values, or `nil` if it is not known.
  var codecName: String?

  /// The number of values of each version, or `nil` if the values have no versions.
  var versions: VersionCounts?

  /// The number of values by their length, or `nil` if they were not counted.
  var sizes: SizeCounts?

  /// Creates a summary.
  ///
  /// - Parameters:
  ///   - information: The description of the store.
  ///   - statistics: The size of the store and further figures.
  init(information: StoreInformation, statistics: StoreStatistics) {
    self.information = information
    self.statistics = statistics
  }

  /// Creates the summary of a store.
  ///
  /// If the store has no statistics, its entries are counted.
  ///
  /// - Throws: The store's errors.
  init(of store: some DataStore) async throws {
    self.init(information: store.information, statistics: try await AnyDataStore(store).storeStatistics())
  }

  /// Appends one JSON object with the names of `StoreInformation` and `StoreStatistics`.
  func appendJSON(to bytes: inout [UInt8]) {
    let details = statistics.details.map { "\(JSONText(string: $0.name)):\($0.value)" }
    var members = ["\"name\":\(JSONText(string: information.name))"]
    if let codecName { members.append("\"codec\":\(JSONText(string: codecName))") }
    members += [
      "\"durability\":\"\(information.durability)\"",
      "\"sharing\":\"\(information.sharing)\"",
      "\"entryCount\":\(statistics.entryCount)",
      "\"bytesOnDisk\":\(statistics.bytesOnDisk.map { "\($0)" } ?? "null")",
      "\"details\":{\(details.joined(separator: ","))}",
    ]
    if let versions {
      let counts = versions.sorted.map { "\"\($0.version)\":\($0.count)" }
      members.append("\"versions\":{\(counts.joined(separator: ","))}")
      members.append("\"unreadableCount\":\(versions.unreadableCount)")
    }
    if let sizes {
      let counts = sizes.sorted.map { "{\"upTo\":\($0.limit),\"count\":\($0.count)}" }
      members.append("\"sizes\":[\(counts.joined(separator: ","))]")
    }
    bytes.append(contentsOf: "{\(members.joined(separator: ","))}".utf8)
  }

  /// The lines of a table.
  func table(isForPeople: Bool = false) -> [String] {
    func size(_ bytes: Int64) -> String {
      isForPeople ? ReadableSize.text(bytes).map { "\(bytes) (\($0))" } ?? "\(bytes)" : "\(bytes)"
    }
    var rows = [("name", information.name.inOneLine)]
    if let codecName { rows.append(("codec", codecName.inOneLine)) }
    rows += [
      ("durability", StoreSummary.words(of: "\(information.durability)")),
      ("sharing", StoreSummary.words(of: "\(information.sharing)")),
      ("entries", "\(statistics.entryCount)"),
    ]
    if let bytes = statistics.bytesOnDisk { rows.append(("bytes on disk", size(bytes))) }
    rows += statistics.details.map { detail in
      (StoreSummary.words(of: detail.name), detail.name.hasSuffix("Bytes") ? size(detail.value) : "\(detail.value)")
    }
    if let versions {
      rows += versions.sorted.map { ("version \($0.version)", "\($0.count)") }
      if versions.unreadableCount > 0 { rows.append(("unreadable", "\(versions.unreadableCount)")) }
    }
    if let sizes { rows += sizes.sorted.map { ("up to \($0.limit) bytes", "\($0.count)") } }
    let width = rows.map(\.0.count).max() ?? 0
    return rows.map { $0.0 + String(repeating: " ", count: width - $0.0.count + 2) + $0.1 }
  }

  /// Returns a name in lower camel case as words.
  private static func words(of name: String) -> String {
    name.reduce(into: "") { $0 += $1.isUppercase ? " \($1.lowercased())" : "\($1)" }
  }
}

/// The number of values by their length as JSON.
struct SizeCounts: Equatable {
  /// The number of values by the smallest power of two that is not less than their length.
  private var counts: [Int: Int] = [:]

  init() {}

  /// Counts the values of a store that can be read, including expired ones.
  ///
  /// - Throws: The store's errors, except for values that cannot be read.
  init(of store: OpenedStore) async throws {
    var counts = SizeCounts()
    if let expiry = store.expiry {
      try await expiry.base.visitValues { if let value = $0 { counts.add(value.value.bytes.count) } }
    } else {
      try await store.present.visitValues { if let value = $0 { counts.add(value.bytes.count) } }
    }
    self = counts
  }

  /// Counts a value of a length.
  mutating func add(_ length: Int) {
    var limit = 16
    while limit < length { limit *= 2 }
    counts[limit, default: 0] += 1
  }

  /// The limits in ascending order, from 16, each with the number of values up to it and above the next smaller one.
  var sorted: [(limit: Int, count: Int)] {
    counts.sorted { $0.key < $1.key }.map { (limit: $0.key, count: $0.value) }
  }
}
