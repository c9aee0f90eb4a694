/// A codec whose bytes are authenticated, such as one that encrypts.
///
/// The bytes look random and change completely with the value. Other transforms therefore belong inside such a codec:
/// compressing its bytes saves no space, a deadline or a version around them is not authenticated, and they need no
/// checksum. If you call `checksummed()`, `compressed()`, `expiring()` or `versioned(…)` on such a codec, the compiler
/// warns:
///
/// ```swift
/// codec.encrypted(with: ring, purpose: "notes").expiring()  // a warning
/// codec.expiring().encrypted(with: ring, purpose: "notes")  // correct
/// ```
///
/// The protocol has no requirements. Your own codec can conform to it for these warnings.
public protocol AuthenticatedCodec<Value>: Codec {}
