import Foundation
import Larder

/// The record of the indexes of a store.
///
/// Every write compares the record with the one that it has read, as part of its commit. A program that defines other
/// indexes can therefore not write without them.
struct IndexCatalog: Codable, Equatable, Sendable {
  /// An index.
  struct Index: Codable, Equatable, Sendable {
    /// The number that the keys of the index entries begin with.
    ///
    /// A number is never used again.
    var id: Int
    var name: String
    var version: Int
    var isUnique: Bool
    /// A Boolean value that indicates whether every value is indexed.
    var isComplete: Bool

    func isDefined<Value>(by definition: StoreIndex<Value>) -> Bool {
      name == definition.name && version == definition.version && isUnique == definition.isUnique
    }
  }

  /// The version of the format.
  static let currentFormat = 3

  var format = IndexCatalog.currentFormat

  /// The name of the codec that the indexed values were decoded with.
  ///
  /// A newer version of a type can have other index keys for the same stored values. `nil` if there is no record yet.
  var codec: String?

  var nextID = 1
  var indexes: [Index] = []

  /// The numbers of the indexes that are no longer used, but of which there may still be entries.
  var dropped: [Int] = []

  /// The number of times that a rebuild has left out a value that it could not decode, since all indexes were complete.
  ///
  /// If it is not zero, the incomplete indexes may lack entries of values that a rebuild has passed. Each of them is
  /// remembered until it is decoded, replaced or removed.
  var undecodableCount = 0

  /// Replaces the indexes by those of a list of definitions, of which new ones are incomplete.
  ///
  /// - Parameters:
  ///   - definitions: The definitions.
  ///   - codecName: The name of the codec. If another one is recorded, all indexes are incomplete.
  mutating func define<Value>(_ definitions: [StoreIndex<Value>], codecName: String) {
    if let codec, codec != codecName { restart() }
    codec = codecName
    let known = indexes
    indexes = definitions.map { definition in
      if let index = known.first(where: { $0.isDefined(by: definition) }) { return index }
      defer { nextID += 1 }
      return Index(
        id: nextID, name: definition.name, version: definition.version, isUnique: definition.isUnique,
        isComplete: false)
    }
    dropped += known.map(\.id).filter { id in !indexes.contains { $0.id == id } }
  }

  /// Marks all indexes as complete.
  mutating func complete() {
    for number in indexes.indices { indexes[number].isComplete = true }
    undecodableCount = 0
  }

  /// Drops all entries of all indexes, so they have to be rebuilt.
  mutating func restart() {
    dropped += indexes.map(\.id)
    for number in indexes.indices {
      indexes[number].id = nextID
      indexes[number].isComplete = false
      nextID += 1
    }
  }

  // MARK: Bytes

  private struct Format: Codable {
    var format: Int
  }

  /// Reads a catalog.
  ///
  /// - Parameters:
  ///   - bytes: The record, or `nil` if there isn't one.
  ///   - store: The name of the store in errors.
  ///   - operation: The operation in errors.
  /// - Throws: `StoreError` with `corrupted`; `versionMismatch` if a newer version wrote the record.
  init(_ bytes: [UInt8]?, store: String, for operation: StoreOperation) throws {
    self.init()
    guard let bytes else { return }
    do {
      let format = try JSONDecoder().decode(Format.self, from: Data(bytes)).format
      guard format == IndexCatalog.currentFormat else {
        throw StoreError(
          .versionMismatch, during: operation, store: store,
          message: "the catalog of indexes has format \(format); this version supports \(IndexCatalog.currentFormat)")
      }
      self = try JSONDecoder().decode(IndexCatalog.self, from: Data(bytes))
    } catch let error as DecodingError {
      throw StoreError(
        .corrupted, during: operation, store: store, message: "the catalog of indexes cannot be read",
        underlying: error)
    }
  }

  private init() {}

  /// Returns the record.
  ///
  /// - Throws: `StoreError` with `encodingFailed`.
  func bytes(store: String, for operation: StoreOperation) throws -> [UInt8] {
    try indexRecord(named: "the catalog of indexes", store: store, for: operation)
  }
}

extension Encodable {
  /// Returns the value as a record of an indexed store, in JSON.
  ///
  /// - Throws: `StoreError` with `encodingFailed`.
  func indexRecord(named name: String, store: String, for operation: StoreOperation) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    do {
      return Array(try encoder.encode(self))
    } catch {
      throw StoreError(
        .encodingFailed, during: operation, store: store, message: "\(name) cannot be encoded", underlying: error)
    }
  }
}

/// An index as it is defined by this program and recorded in the catalog.
struct ActiveIndex<Value: Sendable>: Sendable {
  let definition: StoreIndex<Value>
  let id: Int
  let isComplete: Bool
  /// The beginning of its items in an ``EntryList``.
  let itemPrefix: StoreKey
}

/// The catalog as this program last read it, with the bytes of the record.
struct KnownCatalog<Value: Sendable>: Sendable {
  let bytes: [UInt8]?
  let catalog: IndexCatalog

  /// The indexes that this program defines and the catalog contains, in the order of their definitions.
  let active: [ActiveIndex<Value>]

  /// - Parameter codecName: The name of the codec that the catalog must have.
  init(bytes: [UInt8]?, catalog: IndexCatalog, definitions: [StoreIndex<Value>], codecName: String) {
    self.bytes = bytes
    self.catalog = catalog
    active = definitions.compactMap { definition in
      catalog.indexes.first { $0.isDefined(by: definition) }.map {
        ActiveIndex(
          definition: definition, id: $0.id, isComplete: $0.isComplete && catalog.codec == codecName,
          itemPrefix: IndexLayout.itemPrefix($0.id))
      }
    }
  }

  /// A Boolean value that indicates whether the catalog contains exactly the indexes that this program defines.
  var isCurrent: Bool { active.count == catalog.indexes.count }
}
