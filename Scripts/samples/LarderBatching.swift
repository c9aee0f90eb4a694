import LarderConfiguration
import LarderJSON
import LarderLMDB
import LarderSQLite

struct Photo: Codable, Sendable {
  var pixels: [UInt8] = []
}

var store: AnyDataStore<Photo> { standIn() }
var base: LMDBStore<Position> { standIn() }
var positions: WriteBehindStore<LMDBStore<Position>> { standIn() }
