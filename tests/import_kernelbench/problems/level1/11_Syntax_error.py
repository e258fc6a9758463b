class Model(:
