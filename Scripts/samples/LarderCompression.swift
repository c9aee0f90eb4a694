import LarderCBOR
import LarderConfiguration
import LarderJSON
import LarderLMDB
import LarderSQLite

var samples: [User] { standIn() }
var bytes: [UInt8] { standIn() }
var documents: [[UInt8]] { standIn() }
var input: [UInt8] { standIn() }
var compressed: [UInt8] { standIn() }
