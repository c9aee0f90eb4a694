public import Larder
import Synchronization

/// A codec of bytes that behaves like one that encrypts: its bytes differ each time, and belong to one key.
///
/// A value is a nonce of 8 random bytes, a checksum of the nonce, the key and the value, and the value. The codec returns
/// the stored bytes of an update that changes nothing.
public struct NonceCodec<Base: Codec>: AuthenticatedCodec {
  /// An error of bytes that belong to another key or were changed.
  public struct WrongKey: Error {}

  /// An error of a codec whose key is off.
  public struct MissingKey: StoreErrorConvertible {
    /// `keyUnavailable`.
    public var storeErrorCode: StoreError.Code { .keyUnavailable }
  }

  /// A switch for the key of a codec and its copies.
  public final class Switch: Sendable {
    private let state: Atomic<Bool>

    /// Creates a switch.
    public init(isOn: Bool = true) {
      state = Atomic(isOn)
    }

    /// A Boolean value that indicates whether the codec has its key.
    public var isOn: Bool {
      get { state.load(ordering: .sequentiallyConsistent) }
      set { state.store(newValue, ordering: .sequentiallyConsistent) }
    }
  }

  /// The codec of the values.
  public let base: Base

  /// The switch that is on while the codec has its key.
  public let key: Switch

  /// Creates a codec.
  public init(_ base: Base, key: Switch = Switch()) {
    self.base = base
    self.key = key
  }

  /// The name of the base, followed by `+nonce`.
  public var name: String { base.name + "+nonce" }
  /// `CodecFormat.binary`.
  public var format: CodecFormat { .binary }

  private static var headSize: Int { 16 }

  private func checksum(_ nonce: some Sequence<UInt8>, _ value: some Sequence<UInt8>, _ key: StoreKey?) -> UInt64 {
    // FNV-1a.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func add(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    for byte in nonce { add(byte) }
    add(key == nil ? 0 : 1)
    for byte in key?.bytes ?? [] { add(byte) }
    add(UInt8(truncatingIfNeeded: key?.count ?? 0))
    for byte in value { add(byte) }
    return hash
  }

  /// Appends the bytes of a value, or the stored ones of an equal value.
  public func encode(_ value: Base.Value, into bytes: inout [UInt8], context: ValueContext) throws {
    guard key.isOn else { throw MissingKey() }
    var plain: [UInt8] = []
    try base.encode(value, into: &plain, context: ValueContext(key: context.key))
    if let stored = context.stored, stored.count >= Self.headSize, stored.dropFirst(Self.headSize).elementsEqual(plain),
      head(of: plain, nonce: stored.prefix(8), context.key).elementsEqual(stored.prefix(Self.headSize))
    {
      bytes += stored
      return
    }
    let nonce = (0..<8).map { _ in UInt8.random(in: 0...255) }
    bytes += head(of: plain, nonce: nonce, context.key) + plain
  }

  private func head(of plain: [UInt8], nonce: some Sequence<UInt8>, _ key: StoreKey?) -> [UInt8] {
    Array(nonce) + withUnsafeBytes(of: checksum(nonce, plain, key)) { Array($0) }
  }

  /// Returns the value.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> Base.Value {
    guard key.isOn else { throw MissingKey() }
    let bytes = bytes.withUnsafeBytes { Array($0) }
    guard bytes.count >= Self.headSize else { throw WrongKey() }
    let plain = Array(bytes.dropFirst(Self.headSize))
    guard head(of: plain, nonce: bytes.prefix(8), context.key).elementsEqual(bytes.prefix(Self.headSize)) else {
      throw WrongKey()
    }
    return try plain.withUnsafeBytes { try base.decode($0.bytes, context: ValueContext(key: context.key)) }
  }
}
