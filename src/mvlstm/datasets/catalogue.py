"""Facts about the data sets: files, columns, licences and what is odd about them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class DatasetInfo:
    """Facts about a data set."""

    name: str
    title: str
    rows: int  # before cleaning (for made-up sets: by default)
    variables: tuple[str, ...]  # columns in order, target last
    licence: str
    citation: str
    oddities: str  # what to know before trusting it
    known: tuple[str, ...] = ()  # variables whose values are published ahead
    files: dict[str, str] = field(default_factory=dict)  # with their SHA-256, where that is known
    url: str = ""  # page that describes it
    archive: str = ""  # address of its archive, where it may be downloaded

    @property
    def target(self) -> str:
        """Name of the column to forecast."""
        return self.variables[-1]

    @property
    def builtin(self) -> bool:
        """Whether it needs no file."""
        return not self.files


_UCI = "UCI Machine Learning Repository"
PM25_FILE = "pm25/PRSA_data_2010.1.1-2014.12.31.csv"
ENERGY_FILE = "energy/energydata_complete.csv"
_SML_VARIABLES = """
    Temperature_Habitacion_Sensor Weather_Temperature CO2_Comedor_Sensor CO2_Habitacion_Sensor
    Humedad_Comedor_Sensor Humedad_Habitacion_Sensor Lighting_Comedor_Sensor
    Lighting_Habitacion_Sensor Precipitacion Meteo_Exterior_Crepusculo Meteo_Exterior_Viento
    Meteo_Exterior_Sol_Oest Meteo_Exterior_Sol_Est Meteo_Exterior_Sol_Sud Meteo_Exterior_Piranometro
    Temperature_Exterior_Sensor Humedad_Exterior_Sensor Temperature_Comedor_Sensor
"""
SML_FILES = ("sml2010/NEW-DATA-1.T15.txt", "sml2010/NEW-DATA-2.T15.txt")
PLANT_FILES = {
    "plant_temperature": "plant/plant-temperature.csv",
    "cloud_cover": "plant/weather-cloudcover.csv",
    "dew_point": "plant/weather-dewpoint.csv",
    "humidity": "plant/weather-humidity.csv",
    "temperature": "plant/weather-temperature.csv",
    "wind_bearing": "plant/weather-windbearing.csv",
    "wind_speed": "plant/weather-windspeed.csv",
    "power": "plant/plant-power.csv",
}
_PLANT_DIGESTS = (  # in the order of PLANT_FILES
    "65bb671ea06aabea405d8dd33f9a9b0bf19c000c4f4024340a0b858e77eb772f",
    "f75efca621cae8e3143e1be8fa08a5b4ffdcb296e68aa60871254a4171fe3413",
    "3e2316b57c9efd58312e0bf7154964d00266dde7bc4f56c875b6f9e77c4d1f76",
    "23b5f125dc1c26cefb3496267409e35708a179d1d8699e7d639cebec39fea49d",
    "7950e22c16553417fe44d29ef48427047a24057c8bb08b24b8dc961df51c036d",
    "29316ac561a4ebd67d361753f30e40323a095e8c019136efbfc317b3b8c7fcb9",
    "67ca4bcc7923107f93f37c567908b7992fb2471da0d9bc3f004fbfcbb988bc1f",
    "05d836ef10da49b967fa1bec3ad7e33feabf8cc6b958bc8dbe3e101befde3874",
)
WIND_LEVELS = ("NE", "NW", "SE", "cv")


def _prices(market: str, title: str, inputs: tuple[str, str], digest: str = "") -> DatasetInfo:
    return DatasetInfo(
        name=f"epf_{market.lower()}",
        title=f"Electricity prices of {title}, hourly, six years",
        rows=52_416,
        variables=(*inputs, "price"),
        licence="see the page of the data set; for evaluation only",
        citation=(
            "Lago, Marcjasz, De Schutter and Weron (2021), Forecasting day-ahead electricity "
            "prices, doi 10.1016/j.apenergy.2021.116983"
        ),
        oddities=(
            "Days of 24 hours without changes of the clock. Both inputs are forecasts published "
            "before the prices of the day are set."
        ),
        known=inputs,
        files={f"epf/{market}.csv": digest},
        url="https://doi.org/10.5281/zenodo.4624804",
    )


def _transformer(number: int, digest: str = "") -> DatasetInfo:
    return DatasetInfo(
        name=f"etth{number}",
        title=f"Oil temperature of transformer {number} and six loads, hourly, 2016 to 2018",
        rows=17_420,
        variables=("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT"),
        licence="CC BY-ND 4.0",
        citation="Zhou et al. (2021), Informer, AAAI 35; Electricity Transformer Dataset",
        oddities="The temperature drifts; stretches of loads repeat one value.",
        files={f"ett/ETTh{number}.csv": digest},
        url="https://github.com/zhouhaoyi/ETDataset",
    )


CATALOGUE = {
    info.name: info
    for info in (
        DatasetInfo(
            name="synthetic",
            title="Ten ARMA series, two of which drive the target",
            rows=10_000,
            variables=(*(f"x{i}" for i in range(10)), "y"),
            licence="made by this package",
            citation="After Guo and Lin (2018), whose own recipe is one sentence",
            oddities="Made up; the best possible forecast has RMSE 1.",
        ),
        DatasetInfo(
            name="lorenz96",
            title="Lorenz-96 system, ten coupled variables seen through noise",
            rows=20_000,
            variables=tuple(f"x{i}" for i in range(10)),
            licence="made by this package",
            citation="Lorenz (1996), Predictability: a problem partly solved",
            oddities="Made up and chaotic; drivers of the target are its neighbours.",
        ),
        DatasetInfo(
            name="pm25",
            title="Beijing PM2.5, hourly, 2010 to 2014",
            rows=43_824,
            variables=("DEWP", "TEMP", "PRES", "Iws", "Is", "Ir", "pm2.5"),
            licence="CC BY 4.0",
            citation=f"Chen (2015), Beijing PM2.5, {_UCI}, doi 10.24432/C5JS49",
            oddities=(
                "2,067 rows lack the target; they are dropped and the gaps closed, as in the "
                "paper. Wind direction (cbwd) is left out unless with_wind=True."
            ),
            files={PM25_FILE: "4127f868775e31b3956522adc0ec75af8937dde6a3896e8beed3a376c6d27f1c"},
            url="https://archive.ics.uci.edu/dataset/381/beijing+pm2+5+data",
            archive="https://archive.ics.uci.edu/static/public/381/beijing+pm2+5+data.zip",
        ),
        DatasetInfo(
            name="energy",
            title="Appliances energy use of a house, every 10 minutes, 2016",
            rows=19_735,
            variables=(
                *(f"T{i}" for i in range(1, 10)),
                *("T_out", "Windspeed", "RH_out", "Tdewpoint", "Appliances"),
            ),
            licence="see the page of the data set",
            citation=(
                "Candanedo, Feldheim and Deramaix (2017), Data driven prediction models of "
                f"energy use of appliances in a low-energy house; {_UCI}, doi 10.24432/C5VC8G"
            ),
            oddities="Lights, humidities of the rooms and the two noise columns are left out.",
            files={ENERGY_FILE: "2820bf712ad0275cb18b85a05250926100d8e65ebb9f4d2d016ca91ea152a25d"},
            url="https://archive.ics.uci.edu/dataset/374/appliances+energy+prediction",
            archive="https://archive.ics.uci.edu/static/public/374/appliances+energy+prediction.zip",
        ),
        DatasetInfo(
            name="sml2010",
            title="Room temperature of a house in Valencia, every 15 minutes, 2012",
            rows=4_137,
            variables=tuple(_SML_VARIABLES.split()),
            licence="see the page of the data set",
            citation=f"Zamora-Martinez et al. (2014), SML2010; {_UCI}, doi 10.24432/C5RS3S",
            oddities=(
                "Two files with a week between them, and two rows missing near the end; gaps "
                "are closed. Smooth and drifting: a plain network does far worse than a linear "
                "model here."
            ),
            files={
                SML_FILES[0]: "bd5a4c4f1f6a0652258179c9963fb5c90885eedee4a981617898c18d6b5c4541",
                SML_FILES[1]: "1c008643381903a51557a0599cbd7706ae71b07f2d449d165b17f13b6e12a97e",
            },
            url="https://archive.ics.uci.edu/dataset/274/sml2010",
            archive="https://archive.ics.uci.edu/static/public/274/sml2010.zip",
        ),
        DatasetInfo(
            name="plant",
            title="Photovoltaic plant 1 of the ECML-PKDD 2017 challenge, 2012, hours 2 to 20",
            rows=6_954,
            variables=tuple(PLANT_FILES),
            licence="unknown; for evaluation only, do not redistribute",
            citation="ECML-PKDD 2017 Discovery Challenge, multi-plant photovoltaic forecasting",
            oddities=(
                "From 2012-09-12 on, and on 1 to 5 January, the hours within a day are out of "
                "order; plant temperature is 0 from 26 January to 23 February; two fifths of "
                "the weather temperature are 0 or -1. Fit to replicate the paper, not for claims."
            ),
            files=dict(zip(PLANT_FILES.values(), _PLANT_DIGESTS, strict=True)),
        ),
        _prices(
            "NP",
            "Nord Pool",
            ("grid_load", "wind_power"),
            "cbba6af8cf505d6d1fcadf87e86b6651abdae4a1adf616ee4956f6c1cd039fb8",
        ),
        _prices(
            "PJM",
            "PJM (COMED zone)",
            ("system_load", "zone_load"),
            "58cc0ad32e22e61d9e183b0dc8201747f8c2ef822e469832c5beea8d88251cc0",
        ),
        _prices("BE", "Belgium", ("generation_fr", "load_fr")),
        _prices("FR", "France", ("generation", "load")),
        _prices("DE", "Germany", ("wind", "zone_load")),
        _transformer(1),
        _transformer(2, "a3dc2c597b9218c7ce1cd55eb77b283fd459a1d09d753063f944967dd6b9218b"),
    )
}
