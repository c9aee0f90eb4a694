import Foundation
import StoreAccess

/// The backups of one store in a folder that may also hold those of other stores, for `backup --keep`.
///
/// A backup is named after the store, a digest of the store's path, its number, and its time, as in
/// `users.json-5f2b8c01d3aa-000017-20261127T063000Z`. Only the number orders the backups, because a clock can be wrong.
struct BackupRotation {
  /// A backup, or the temporary folder of one that is running or was killed.
  private struct Item {
    let name: String
    let number: Int
    let isComplete: Bool
  }

  /// The maximum length of the store's name in the name of a backup, in bytes of UTF-8.
  private static let maximumLabelLength = 120

  private let label: String
  private let digest: String

  /// Creates the rotation of a store's backups.
  ///
  /// Stores in one LMDB environment or SQLite database are backed up together, so they share their rotation.
  ///
  /// - Parameter path: The absolute path of the store's file or folder, without symbolic links. Each path has backups of
  ///   its own.
  init(ofStoreAt path: String) {
    var label = path.split(separator: "/").last.map(String.init) ?? "store"
    while label.utf8.count > Self.maximumLabelLength { label.removeLast() }
    self.label = label
    // FNV-1a with 64 bits, of which 48 tell the stores of a folder apart.
    let hash = path.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    let digits = String(hash & 0xFFFF_FFFF_FFFF, radix: 16)
    digest = String(repeating: "0", count: 12 - digits.count) + digits
  }

  /// Returns the name of the next backup.
  ///
  /// - Parameters:
  ///   - names: The names in the folder.
  ///   - now: The time. It is in the name for people.
  func newName(beside names: [String], at now: Date) -> String {
    let number = "\((items(among: names).map(\.number).max() ?? 0) + 1)"
    let style = Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted)
    return
      "\(label)-\(digest)-\(String(repeating: "0", count: max(0, 6 - number.count)))\(number)-\(now.formatted(style))"
  }

  /// Returns the names of what is to be removed after a backup is complete.
  ///
  /// These are the backups of the same store with lower numbers, except for the latest of them. Backups with the same or a
  /// higher number were made by other calls at the same time. A temporary folder may be that of a backup that is still
  /// running; each backup removes the others when it begins.
  ///
  /// - Parameters:
  ///   - names: The names in the folder.
  ///   - newName: The name of the backup that is complete now.
  ///   - count: The number of backups to keep with this one, at least 1.
  func surplus(among names: [String], after newName: String, keeping count: Int) -> [String] {
    guard let new = item(named: newName) else { return [] }
    let older = items(among: names).filter { $0.isComplete && $0.number < new.number }
      .sorted { ($0.number, $0.name) < ($1.number, $1.name) }
    return older.dropLast(count - 1).map(\.name)
  }

  /// Returns the names among others that have only a time, and so do not say which store they are a backup of.
  ///
  /// - Parameter names: The names in the folder.
  static func namesWithoutStore(among names: [String]) -> [String] {
    names.filter { $0.wholeMatch(of: /\d{8}T\d{6}Z/) != nil }.sorted()
  }

  private func items(among names: [String]) -> [Item] { names.compactMap(item) }

  private func item(named name: String) -> Item? {
    // The digest tells the stores apart. The label is for people, and a file system may have changed its form.
    let pattern = /.*-([0-9a-f]{12})-(\d{6,18})-\d{8}T\d{6}Z(\.larder-.*)?/
    guard let match = name.wholeMatch(of: pattern.dotMatchesNewlines()), match.output.1 == digest,
      let number = Int(match.output.2)
    else { return nil }
    return Item(name: name, number: number, isComplete: match.output.3 == nil)
  }
}
