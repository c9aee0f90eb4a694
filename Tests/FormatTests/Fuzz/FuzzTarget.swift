import Foundation
import Larder
import LarderCBOR
import LarderExpiry

/// A decoder or a recovery that reads bytes from outside, with the promises that hold for all bytes.
///
/// `make fuzz` runs it too, so it does not depend on a test framework.
enum FuzzTarget: String, CaseIterable, Sendable {
  case keyComponents, pageCursor, storeURL, versionedJSON, versionedCBOR, expiringJSON, expiringCBOR, checksummed
  case jsonDocument, jsonJournal, compressedFile, queueSegment
  case compressedValue
  case encryptedValue, keyRing
  case httpFields, httpURL, httpRecord
  case lmdbPages

  /// A broken promise.
  struct Failure: Error {
    let message: String
  }

  static func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Failure(message: message()) }
  }

  /// Gives the bytes to the target.
  ///
  /// - Throws: ``Failure`` if a promise is broken.
  func run(_ bytes: [UInt8]) async throws {
    switch self {
    case .keyComponents: try Self.readComponents(bytes)
    case .pageCursor: try Self.readCursor(String(decoding: bytes, as: UTF8.self))
    case .storeURL: try Self.readURL(String(decoding: bytes, as: UTF8.self))
    case .versionedJSON: try Self.reread(bytes, by: Self.versioned(JSONCodec(), JSONCodec()))
    case .versionedCBOR: try Self.reread(bytes, by: Self.versioned(CBORCodec(), CBORCodec()))
    case .expiringJSON: try Self.reread(bytes, by: JSONCodec<[Int]>().expiring())
    case .expiringCBOR: try Self.reread(bytes, by: CBORCodec<[Int]>().expiring())
    case .checksummed: try Self.reread(bytes, by: CBORCodec<[Int]>().checksummed())
    case .jsonDocument: try await FuzzedFiles.openJSON(document: bytes, journal: nil)
    case .jsonJournal: try await FuzzedFiles.openJSON(document: FuzzedFiles.document, journal: bytes)
    case .queueSegment: try await FuzzedFiles.openQueue(bytes)
    default: try await runWithTrait(bytes)
    }
  }

  private static func readComponents(_ bytes: [UInt8]) throws {
    let key = StoreKey(bytes: bytes)
    let parts: [KeyComponent]
    do { parts = try key.components() } catch is StoreError { return }
    // Only one key has these components, or two keys would stand for one thing.
    let again = StoreKey(components: parts)
    try expect(again == key, "\(Hexadecimal.text(of: bytes)) is read as \(parts), but written as \(again)")
  }

  private static func readCursor(_ text: String) throws {
    let cursor: PageCursor
    do { cursor = try PageCursor(text) } catch is StoreError { return }
    try expect(cursor.text.utf8.elementsEqual(text.utf8), "the cursor \(text) is written as \(cursor.text)")
  }

  private static func readURL(_ text: String) throws {
    let url: StoreURL
    do { url = try StoreURL(text) } catch is StoreError { return }
    try expect(url.description.utf8.elementsEqual(text.utf8), "the URL \(text) is written as \(url)")
  }

  /// Decodes a value, and requires that one that is accepted is written in a form that is read as the same value.
  static func reread<C: Codec>(_ bytes: [UInt8], by codec: C) throws where C.Value: Equatable {
    let value: C.Value
    do { value = try bytes.withUnsafeBytes { try codec.decode($0.bytes) } } catch { return }
    var written: [UInt8] = []
    do {
      try codec.encode(value, into: &written)
      let again = try written.withUnsafeBytes { try codec.decode($0.bytes) }
      try expect(again == value, "\(Hexadecimal.text(of: bytes)) is read as \(value), and then as \(again)")
    } catch let failure as Failure {
      throw failure
    } catch {
      throw Failure(message: "\(Hexadecimal.text(of: bytes)) is read as \(value), which cannot be written: \(error)")
    }
  }

  private static func versioned<Base: Codec<[Int]>>(_ base: Base, _ older: some Codec<Int>) throws -> VersionedCodec<
    Base
  > {
    try base.versioned(2, ValueMigration(from: 1, older) { [$0] }, ValueMigration(from: 0, older) { [$0, $0] })
  }
}
