/// A type that encodes values into bytes and decodes them.
///
/// A store records the ``name`` of its codec and refuses to be opened with another codec, so the name must change with
/// the format.
///
/// ```swift
/// struct TextCodec: Codec {
///   var name: String { "text" }
///   var format: CodecFormat { .binary }
///
///   func encode(_ value: String, into bytes: inout [UInt8], context: ValueContext) throws {
///     bytes += value.utf8
///   }
///
///   func decode(_ bytes: RawSpan, context: ValueContext) throws -> String {
///     guard let text = bytes.withUnsafeBytes({ String(validating: $0, as: UTF8.self) }) else { throw NotText() }
///     return text
///   }
/// }
/// ```
public protocol Codec<Value>: Sendable {
  /// The type of the values.
  associatedtype Value: Sendable

  /// The name of the format, such as `json`. Codecs that write the same format for the same values share a name.
  var name: String { get }

  /// The kind of the encoded bytes.
  var format: CodecFormat { get }

  /// The names of other formats that this codec reads too, so it can take over a store that recorded one of them.
  ///
  /// Such a store can be opened with this codec. The store records the ``name`` of this codec with the first write, and
  /// then refuses the codecs that wrote it before. A codec that wraps another one appends its suffix to each of the
  /// names of that one. Defaults to an empty list.
  var adoptedNames: [String] { get }

  /// The name of the newest format that this codec reads and can write, if it still writes an older one.
  ///
  /// A store that records it keeps it, and the codec writes this format while ``ValueContext/usesNewestFormat`` is set.
  /// ``VersionedCodec`` has such a name during a rolling deployment. A codec that wraps another one appends its suffix.
  /// Defaults to `nil`.
  var newestName: String? { get }

  /// A Boolean value that indicates whether the values cannot be read without a key.
  ///
  /// A codec that wraps another one returns what that one does. Defaults to `false`.
  var encryptsValues: Bool { get }

  /// Appends the encoded bytes of a value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - bytes: The array that receives the bytes. After an error, its content is undefined.
  ///   - context: The entry that the value belongs to. A codec that wraps another one passes it on, with
  ///     ``ValueContext/stored`` reduced to the bytes of the other codec.
  /// - Throws: An error of the value or the format if the value cannot be encoded. A store reports it as the underlying
  ///   error of ``StoreError/Code/encodingFailed``.
  func encode(_ value: Value, into bytes: inout [UInt8], context: ValueContext) throws

  /// Returns the value that all the given bytes encode.
  ///
  /// - Parameters:
  ///   - bytes: The bytes that ``encode(_:into:context:)`` appended. They may be memory of the store that is valid only
  ///     during the call.
  ///   - context: The entry that the value belongs to.
  /// - Throws: An error of the value or the format if the bytes do not encode a value. A store reports it as the
  ///   underlying error of a ``StoreError``. The code is that of the error if it is a ``StoreErrorConvertible``;
  ///   ``StoreError/Code/undecodable`` if it is a `DecodingError` other than `dataCorrupted`, because the bytes are sound
  ///   but do not fit the type; and ``StoreError/Code/corrupted`` otherwise.
  func decode(_ bytes: RawSpan, context: ValueContext) throws -> Value
}

/// The entry to which a value belongs that a codec encodes or decodes.
///
/// ```swift
/// var bytes: [UInt8] = []
/// try codec.encode(user, into: &bytes, context: ValueContext(key: "user:7"))
/// ```
public struct ValueContext: Sendable {
  /// The key of the entry, or `nil` for a value without a key.
  ///
  /// A value is decoded with the key that it was encoded with. The key is that of the store that holds the bytes: a
  /// ``TypedView`` passes the key including its prefix. An item of a queue has a key only if you gave it one,
  /// because a generated key is not known yet when the item is encoded.
  public var key: StoreKey?

  /// The stored bytes that an `update` replaces with those of the value, or `nil` for any other write and for reads.
  ///
  /// A codec whose bytes differ each time, such as one that encrypts, can return these bytes if they encode an equal
  /// value, so an `update` that changes nothing writes nothing.
  ///
  /// A codec that wraps another one passes on the part of these bytes that the other codec has written, or `nil` if that
  /// part is not at hand.
  public var stored: ArraySlice<UInt8>?

  /// A Boolean value that indicates whether the store records the codec's ``Codec/newestName``, so values are written
  /// in the newest format.
  public var usesNewestFormat: Bool

  /// Creates a context.
  ///
  /// - Parameters:
  ///   - key: The key of the entry. Defaults to `nil`, for a value without a key.
  ///   - stored: The stored bytes that an `update` replaces. Defaults to `nil`.
  ///   - usesNewestFormat: A Boolean value that indicates whether values are written in the newest format of the codec.
  ///     Defaults to `false`.
  @inlinable
  public init(key: StoreKey? = nil, stored: ArraySlice<UInt8>? = nil, usesNewestFormat: Bool = false) {
    self.key = key
    self.stored = stored
    self.usesNewestFormat = usesNewestFormat
  }

  /// Returns the context for a codec whose bytes are a part of the stored ones.
  ///
  /// - Parameter part: A closure that returns the part of the stored bytes, or `nil` if it is not at hand. It is not called
  ///   if there are no stored bytes. If it throws, there is no such part.
  public func forBase(_ part: (_ stored: ArraySlice<UInt8>) throws -> ArraySlice<UInt8>?) -> ValueContext {
    guard let stored else { return self }
    var context = self
    do {
      context.stored = try part(stored)
    } catch {
      // A codec around this one that passes on its own bytes costs a write, but must not fail it.
      context.stored = nil
    }
    return context
  }
}

extension Codec {
  /// No other names.
  public var adoptedNames: [String] { [] }

  /// `nil`: the codec writes the newest format.
  public var newestName: String? { nil }

  /// `false`.
  public var encryptsValues: Bool { false }

  /// Appends the encoded bytes of a value that belongs to no entry; see ``encode(_:into:context:)``.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - bytes: The array that receives the bytes.
  /// - Throws: As ``encode(_:into:context:)``.
  public func encode(_ value: Value, into bytes: inout [UInt8]) throws {
    try encode(value, into: &bytes, context: ValueContext())
  }

  /// Returns the value that all the given bytes encode and that belongs to no entry; see ``decode(_:context:)``.
  ///
  /// - Parameter bytes: The bytes.
  /// - Throws: As ``decode(_:context:)``.
  public func decode(_ bytes: RawSpan) throws -> Value {
    try decode(bytes, context: ValueContext())
  }
}

/// An error of a codec that names the code of the ``StoreError`` with which a store reports it.
public protocol StoreErrorConvertible: Error {
  /// The code, such as ``StoreError/Code/versionMismatch``.
  var storeErrorCode: StoreError.Code { get }
}

/// The kind of the bytes that a codec writes, for stores and codecs that put something around them.
///
/// ```swift
/// var format: CodecFormat { base.format == .json ? .json : .binary }
/// ```
public enum CodecFormat: Sendable, Hashable {
  /// One JSON value as text in UTF-8 (RFC 8259).
  case json
  /// One CBOR data item (RFC 8949).
  case cbor
  /// Arbitrary bytes.
  case binary
}

/// A codec that stores bytes unchanged.
///
/// ```swift
/// let images = try await LMDBStore(path: folder + "/images", codec: .raw)
/// try await images.setValue(photo, forKey: "logo")
/// ```
public struct RawCodec: Codec {
  /// Creates the codec.
  public init() {}

  /// `raw`.
  public var name: String { "raw" }

  /// ``CodecFormat/binary``.
  public var format: CodecFormat { .binary }

  /// Appends the bytes.
  public func encode(_ value: [UInt8], into bytes: inout [UInt8], context: ValueContext) {
    value.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
  }

  /// Returns a copy of the bytes.
  public func decode(_ bytes: RawSpan, context: ValueContext) -> [UInt8] {
    bytes.withUnsafeBytes { Array($0) }
  }
}

extension Codec where Self == RawCodec {
  /// A codec that stores bytes unchanged; see ``RawCodec``.
  public static var raw: RawCodec { RawCodec() }
}

/// An error that a codec throws for bytes that it did not write, or that were damaged since.
///
/// A store reports it as ``StoreError/Code/corrupted``, with this error as the underlying one. A codec of your own can
/// throw it, too:
///
/// ```swift
/// func mark(of bytes: RawSpan) throws -> UInt8 {
///   guard bytes.byteCount > 0 else { throw ValueFormatError("the value is empty") }
///   return bytes.unsafeLoad(as: UInt8.self)
/// }
/// ```
public struct ValueFormatError: RedactedError, Hashable, CustomStringConvertible {
  /// The description of the problem, without any part of the value.
  public let description: String

  /// Creates an error.
  ///
  /// - Parameter description: The description of the problem, without any part of the value.
  public init(_ description: String) {
    self.description = description
  }
}
