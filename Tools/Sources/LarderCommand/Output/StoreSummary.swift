import Larder

/// What a store is, and how large, for `larder stat`.
struct StoreSummary {
  /// What the store says of itself.
  let information: StoreInformation

  /// Its size.
  let statistics: StoreStatistics

  /// Describes a store.
  ///
  /// - Parameters:
  ///   - information: What the store says of itself.
  ///   - statistics: Its size.
  init(information: StoreInformation, statistics: StoreStatistics) {
    self.information = information
    self.statistics = statistics
  }

  /// Asks a store; where it has no statistics of its own, its entries are counted.
  ///
  /// - Throws: What the store throws.
  init(of store: some DataStore) async throws {
    let information = store.information
    if let maintenance = information.maintenance {
      self.init(information: information, statistics: try await maintenance.statistics())
    } else {
      self.init(information: information, statistics: StoreStatistics(entryCount: try await store.count()))
    }
  }

  /// Appends one JSON object, whose names are those of `StoreInformation` and `StoreStatistics`.
  func appendJSON(to bytes: inout [UInt8]) {
    let details = statistics.details.map { "\(JSONText(string: $0.name)):\($0.value)" }
    let members = [
      "\"name\":\(JSONText(string: information.name))",
      "\"acknowledgement\":\"\(information.acknowledgement)\"",
      "\"sharing\":\"\(information.sharing)\"",
      "\"entryCount\":\(statistics.entryCount)",
      "\"bytesOnDisk\":\(statistics.bytesOnDisk.map { "\($0)" } ?? "null")",
      "\"details\":{\(details.joined(separator: ","))}",
    ]
    bytes.append(contentsOf: "{\(members.joined(separator: ","))}".utf8)
  }

  /// The lines of a table for people to read.
  var table: [String] {
    var rows = [
      ("name", information.name.inOneLine),
      ("acknowledgement", StoreSummary.words(of: "\(information.acknowledgement)")),
      ("sharing", StoreSummary.words(of: "\(information.sharing)")),
      ("entries", "\(statistics.entryCount)"),
    ]
    if let bytes = statistics.bytesOnDisk { rows.append(("bytes on disk", "\(bytes)")) }
    rows += statistics.details.map { (StoreSummary.words(of: $0.name), "\($0.value)") }
    let width = rows.map(\.0.count).max() ?? 0
    return rows.map { $0.0 + String(repeating: " ", count: width - $0.0.count + 2) + $0.1 }
  }

  /// A name in lower camel case as words.
  private static func words(of name: String) -> String {
    name.reduce(into: "") { $0 += $1.isUppercase ? " \($1.lowercased())" : "\($1)" }
  }
}
