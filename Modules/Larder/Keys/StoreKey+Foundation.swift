#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension StoreKey {
  /// Makes a key of the 16 bytes of a UUID.
  ///
  /// - Parameter uuid: Any UUID. Its bytes keep their order, so UUIDs of version 7 sort by their time.
  public init(_ uuid: UUID) {
    self = Swift.withUnsafeBytes(of: uuid.uuid) { StoreKey(copying: $0) }
  }

  /// The UUID that the key was made from, or `nil` where the key does not have 16 bytes.
  public var uuid: UUID? {
    guard count == 16 else { return nil }
    return withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
}
