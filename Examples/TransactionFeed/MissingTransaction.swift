import Larder

/// A transaction that was on a page but is missing under its key, which must not happen.
struct MissingTransaction: Error, CustomStringConvertible {
  let key: StoreKey

  var description: String { "the transaction with the key \(key) was on a page, but the store does not have it" }
}
